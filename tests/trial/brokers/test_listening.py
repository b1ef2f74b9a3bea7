"""A free port stays free until its server listens."""

from __future__ import annotations

from pathlib import Path

import pytest

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
