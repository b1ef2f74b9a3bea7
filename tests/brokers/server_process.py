"""A broker as a process of a test: started, stopped, killed and frozen, on a loopback port."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from signal import Signals
from time import monotonic

import pytest

from tests.brokers.suspending import suspend
from tests.waiting import PATIENCE


class ServerProcess:
    """A broker that listens on `port` and writes its log to `folder`. Mutable.

    `store` is what it keeps of its messages there, `orderly` the signal that stops it.
    """

    store = ""
    orderly = signal.SIGTERM

    def __init__(self, folder: Path, port: int, command: Sequence[str | Path]) -> None:
        self.folder, self.port = folder, port
        self._command = [str(each) for each in command]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it without waiting: a member of a cluster needs the others first."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # a program the machine has
                self._command, stdout=log, stderr=log
            )

    def wait(self) -> None:
        process, until = self._process, monotonic() + PATIENCE
        assert process is not None
        while not self._answers():
            assert monotonic() < until, f"{self._command[0]} does not listen"
            try:
                status = process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"{self._command[0]} ended with {status}: {self.log}")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        self._end(self.orderly)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def wipe(self) -> None:
        """Let it come back without anything that it had."""
        self.kill()
        for each in self.folder.glob(self.store):
            rmtree(each) if each.is_dir() else each.unlink()
        self.start()

    def freeze(self) -> None:
        """Suspend the process; its connections stay open and silent."""
        assert self._process is not None
        suspend(self._process)

    def thaw(self) -> None:
        if self._process is not None:
            self.send(signal.SIGCONT)

    def send(self, number: Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def _end(self, number: Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait(PATIENCE)
