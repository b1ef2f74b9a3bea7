"""An S3 server with one bucket, for every test that asks for the fixture `bucket`."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Final

import pytest
from pyarrow import fs

from gateway.trial.brokers.listening import free_port
from tests.waiting import until

BUCKET: Final = "night"


@dataclass
class Bucket:
    """An S3 server with one bucket, which can be stopped and started at the same port.

    A stop removes its objects.
    """

    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        options = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        return f"s3://{BUCKET}/gateway/archive?{options}"

    def start(self, log: int | IO[bytes] = subprocess.DEVNULL) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter
            command, stdout=subprocess.DEVNULL, stderr=log
        )
        until(self._answers)
        address = f"127.0.0.1:{self.port}"
        system = fs.S3FileSystem(
            endpoint_override=address, scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        system.create_dir(BUCKET)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
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
