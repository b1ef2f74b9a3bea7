"""`gateway broker activemq` as a process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gateway.trial.brokers.activemq import client_jars, missing
from tests.waiting import PATIENCE


@pytest.mark.broker
@pytest.mark.skipif(bool(missing()), reason=missing() or "installed")
def test_the_printed_settings_lead_to_the_broker(tmp_path: Path) -> None:
    command = ["-m", "gateway", "broker", "activemq", "--store", str(tmp_path / "store")]
    with subprocess.Popen(  # noqa: S603
        [sys.executable, *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4 + len(client_jars()))]
        settings = yaml.safe_load("".join(lines))
        (url,) = settings["urls"]
        assert lines[0].startswith(f"# listening on {url}; MQTT on port ")
        assert lines[0].endswith(f"; Ctrl-C stops it; its log is {tmp_path}/store/broker.log\n")
        port = int(url.rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
        assert settings["classpath"] == list(client_jars())
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert list((tmp_path / "store").iterdir())


def test_the_help() -> None:
    words = [sys.executable, "-m", "gateway", "broker", "activemq", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603

    assert done.returncode == 0
    assert "Run ActiveMQ" in done.stdout
    assert "port" in done.stdout.lower()
