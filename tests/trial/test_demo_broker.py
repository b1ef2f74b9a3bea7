"""The MQTT broker of the demo leaves nothing that grows."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from gateway.trial.demo import broker

TALKATIVE = """
import socket, sys
print("x" * 100_000, flush=True)
print("y" * 100_000, file=sys.stderr, flush=True)
socket.create_server(("127.0.0.1", int(sys.argv[1]))).accept()
"""


def test_what_the_broker_writes_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", TALKATIVE]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(broker, "_command", lambda port, _: ("talkative", [*command, str(port)]))

    with broker.mqtt_broker():
        assert not [each for each in tmp_path.rglob("*") if each.is_file() and each.stat().st_size]
