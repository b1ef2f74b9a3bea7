"""A real nats-server for a test, on a free loopback port and with a temporary folder."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.brokers.mosquitto import free_port
from tests.waiting import PATIENCE

PROGRAM = shutil.which("nats-server") or shutil.which(
    "nats-server", path="/usr/sbin:/usr/local/sbin"
)


class NatsServer:
    """A server process with JetStream; its streams survive `stop` and `kill`. Mutable."""

    def __init__(self, program: str, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.url = f"nats://127.0.0.1:{self.port}"
        self._program = program
        self._config = folder / "nats.conf"
        self._config.write_text("max_payload: 8388608\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [self._program, "-a", "127.0.0.1", "-p", str(self.port), "-js"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # a program the machine has
                [*command, "-c", str(self._config), "-sd", str(self.folder)], stdout=log, stderr=log
            )
        until = monotonic() + PATIENCE
        while not self._answers():
            assert monotonic() < until, "nats-server does not listen"
            try:
                status = self._process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"nats-server ended with {status}: {(self.folder / 'log').read_text()}")

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Suspend the process; its connections stay open and silent."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait(PATIENCE)


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    pytest.importorskip("nats")
    if PROGRAM is None:
        pytest.skip("nats-server is not installed")
    folder = tmp_path / "nats"
    folder.mkdir()
    server = NatsServer(PROGRAM, folder)
    server.start()
    yield server
    server.stop()
