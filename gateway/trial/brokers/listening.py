"""A free port of the loopback interface, and the process that listens there, from start to end."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import randbelow
from threading import Event
from time import monotonic

from gateway.errors import NotConnectedError

START_TIMEOUT = 10.0  # seconds
_FIRST_PORT, _LAST_PORT = 10_000, 32_767
_TRIES = 100
_given: set[int] = set()  # nobody may listen on them yet


def free_port() -> int:
    """Return a port that nobody listens on, below those that a system gives to clients.

    A port of these could be that of a connection when the broker starts, or starts again. Each port
    is given once to all processes of a user until this one ends: its broker may start later than
    the next one asks.

    Raises:
        NotConnectedError: none was found.
        OSError: the file of the given ports cannot be opened.
    """
    ports = _ports()
    for _ in range(_TRIES):
        port = _FIRST_PORT + randbelow(_LAST_PORT - _FIRST_PORT + 1)
        if port in _given:
            continue
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            fcntl.lockf(ports, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            _given.add(port)
            return port
    raise NotConnectedError(f"no free port from {_FIRST_PORT} to {_LAST_PORT}")


@cache
def _ports() -> int:
    """Open the file whose locked bytes are the ports that a process of this user was given."""
    path = Path(tempfile.gettempdir()) / f"gateway-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


@contextmanager
def running_process(
    name: str, port: int, command: Sequence[str], folder: Path, output: Path
) -> Iterator[None]:
    """Run a program that listens on `port` for the duration of the block, as `start_process` does.

    Raises:
        NotConnectedError: it does not listen.
    """
    process = start_process(command, folder, output)
    try:
        wait_until_it_listens(name, port, process)
        yield
    finally:
        end(process)


def start_process(
    command: Sequence[str],
    folder: Path,
    output: Path,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in `folder`; the file `output` gets what it writes."""
    with output.open("ab") as file:
        return subprocess.Popen(  # noqa: S603  # a program of the machine
            command, env=environment, stdout=file, stderr=file, cwd=folder
        )


def wait_until_it_listens(
    name: str, port: int, process: subprocess.Popen[bytes], timeout: float = START_TIMEOUT
) -> None:
    """Wait until `process` listens on `port` of the loopback interface.

    Raises:
        NotConnectedError: it ended before, or does not listen within `timeout` seconds.
    """
    deadline = monotonic() + timeout
    pause = Event()
    while monotonic() < deadline and process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        pause.wait(0.05)
    raise NotConnectedError(f"{name} did not start on port {port}")


def end(process: subprocess.Popen[bytes], timeout: float = 5.0) -> None:
    """Terminate a process, and kill it when it has not ended after `timeout` seconds."""
    process.terminate()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
