"""A free port stays free until its server listens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.trial.brokers import listening
from gateway.trial.brokers.listening import free_port

CLIENT_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@pytest.mark.skipif(not CLIENT_PORTS.exists(), reason="no Linux")
def test_no_connection_of_a_client_gets_a_free_port() -> None:
    first = int(CLIENT_PORTS.read_text().split()[0])

    assert all(free_port() < first for _ in range(50))


def test_a_port_is_given_once() -> None:
    """A cluster asks for the ports of all its servers before the first one listens."""
    ports = [free_port() for _ in range(1_000)]

    assert len(set(ports)) == len(ports)


def test_a_port_is_given_to_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """RabbitMQ listens seconds after it was given a port; another's server took it meanwhile."""
    port = free_port()
    give = f"""
from gateway.trial.brokers import listening
listening._FIRST_PORT = listening._LAST_PORT = {port}
listening.free_port()
"""
    listening._given.remove(port)  # noqa: SLF001  # this process gives it back
    monkeypatch.setattr(listening, "_FIRST_PORT", port)
    monkeypatch.setattr(listening, "_LAST_PORT", port)
    other = [sys.executable, "-c", give]
    refused = subprocess.run(other, capture_output=True, check=False)  # noqa: S603  # this Python

    assert b"NotConnectedError: no free port" in refused.stderr
    assert free_port() == port


def test_a_file_of_ports_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    listening._ports.cache_clear()  # noqa: SLF001  # as at the first port of a process
    try:
        with pytest.raises(FileNotFoundError, match="absent/gateway-ports-"):
            free_port()
    finally:
        listening._ports.cache_clear()  # noqa: SLF001
