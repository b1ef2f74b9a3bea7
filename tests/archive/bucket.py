"""An S3 server with one bucket, for every test that asks for the fixture `bucket`."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Final

import pytest
from pyarrow import fs

from gateway.trial.brokers.listening import free_port
from tests.waiting import until

BUCKET: Final = "night"
_FORKING: Final = multiprocessing.get_context("forkserver")  # loads the server once for all tests


def serve(port: int, log: str) -> None:
    """Run the server in this process; it writes its requests to the end of the file `log`."""
    from moto.server import main  # noqa: PLC0415  # a second of processor time

    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream.fileno())
    main(["-H", "127.0.0.1", "-p", str(port)])


@dataclass
class Bucket:
    """An S3 server with one bucket, which can be stopped and started at the same port.

    A stop removes its objects.
    """

    port: int = field(default_factory=free_port)
    process: BaseProcess | None = None

    @property
    def url(self) -> str:
        options = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        return f"s3://{BUCKET}/gateway/archive?{options}"

    def start(self, log: str = os.devnull) -> None:
        _FORKING.set_forkserver_preload([serve.__module__, "moto.server", "moto.s3.urls"])
        self.process = _FORKING.Process(target=serve, args=(self.port, log), daemon=True)
        self.process.start()
        until(self._answers)
        address = f"127.0.0.1:{self.port}"
        system = fs.S3FileSystem(
            endpoint_override=address, scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        system.create_dir(BUCKET)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    pytest.importorskip("moto")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    found = Bucket()
    yield found
    found.stop()
