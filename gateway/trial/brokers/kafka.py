"""noida-db, a small server of Kafka's protocol, on a free loopback port and in its own folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from gateway.extras import not_installed
from gateway.trial.brokers.listening import free_port, running_process

PROGRAM = "noida-db"
PACKAGE = "noida_db"


def missing() -> str:
    """Return the reason why no server can be used, or an empty text."""
    if find_spec(PACKAGE) is None:
        return f"no {PROGRAM}: pip install {PROGRAM}"
    return "" if find_spec("confluent_kafka") else not_installed("confluent_kafka", "kafka")


def command(port: int, data: Path) -> list[str]:
    """Return the command of a server that listens on a port and keeps its topics in a folder."""
    program = Path(str(files(PACKAGE))) / PROGRAM
    options = ["--only", "kafka", "--kafka-port", str(port), "--data-dir", str(data)]
    return [str(program), "start", *options]


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a server for the duration of the block; yield its HOST:PORT.

    Raises:
        NotConnectedError: the server did not start.
    """
    port = free_port()
    started = command(port, folder / "data")
    with running_process(PROGRAM, port, started, folder, folder / "log"):
        yield f"127.0.0.1:{port}"
