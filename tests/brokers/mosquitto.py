"""A real mosquitto for a test, on a free loopback port and with a temporary folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Protocol

import pytest

from tests.waiting import PATIENCE

PROGRAM = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
OPEN = ("allow_anonymous true",)
UNBOUNDED = ("max_queued_messages 0", "max_inflight_messages 0")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Mosquitto:
    """A broker process; its stored messages survive `stop`, not `kill`. Mutable."""

    def __init__(self, program: str, folder: Path, lines: tuple[str, ...]) -> None:
        self.port = free_port()
        self.folder = folder
        self._program = program
        self._config = folder / "mosquitto.conf"
        user = ["user root"] if os.geteuid() == 0 else []
        self._config.write_text(
            "\n".join(
                [
                    f"listener {self.port} 127.0.0.1",
                    *user,
                    "persistence true",
                    f"persistence_location {folder}/",
                    *UNBOUNDED,
                    *lines,
                    "",
                ]
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # a program the machine has
                [self._program, "-c", str(self._config)], stdout=log, stderr=log
            )
        until = monotonic() + PATIENCE
        while not self._answers():
            assert monotonic() < until, "mosquitto does not listen"
            try:
                status = self._process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"mosquitto ended with {status}: {(self.folder / 'log').read_text()}")

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Stop it; sessions and their messages are saved."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def reread(self) -> None:
        """Have it reload its passwords and access lists."""
        self._signal(signal.SIGHUP)

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


class StartMosquitto(Protocol):
    def __call__(self, *lines: str) -> Mosquitto:
        """Start a broker with these lines in its configuration; anonymous without any."""


@pytest.fixture
def start_mosquitto(tmp_path: Path) -> Iterator[StartMosquitto]:
    if PROGRAM is None:
        pytest.skip("mosquitto is not installed")
    program = PROGRAM
    started: list[Mosquitto] = []

    def start(*lines: str) -> Mosquitto:
        folder = tmp_path / f"mosquitto-{len(started)}"
        folder.mkdir()
        broker = Mosquitto(program, folder, lines or OPEN)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.kill()


@pytest.fixture
def mosquitto(start_mosquitto: StartMosquitto) -> Mosquitto:
    return start_mosquitto()
