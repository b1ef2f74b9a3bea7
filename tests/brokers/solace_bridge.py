"""A `gateway run` process, and the gateway's SMF broker as a process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")

from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.running import Process

QUICK = "backoff_min: 0.05, backoff_max: 0.2"


class StoredBroker:
    """`gateway broker smf --store` as a process on one port.

    Mutable: owned by the test.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "gateway", "broker", "smf", "--port", str(self.port)]
        self._process = subprocess.Popen(  # noqa: S603  # our own command
            [*command, "--store", str(self._folder)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rpartition(":")[2])

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()
            self._process = None


@contextmanager
def gateway(
    folder: Path, endpoints: str, routes: str, sides: Sequence[tuple[str, str]]
) -> Iterator[Process]:
    """Run a gateway; yield it once its `sides` (endpoint and `source` or `sink`) are connected."""
    config = folder / "gateway.yaml"
    config.write_text(
        f"gateway: {{name: test}}\nendpoints:\n{endpoints}routes:\n{routes}"
        f"archive: {{path: {folder / 'archive'}}}\n"
    )
    process = Process(config)
    try:
        for endpoint, side in sides:
            process.wait_for("connected", endpoint=endpoint, side=side)
        yield process
    finally:
        process.end(signal.SIGKILL)


@contextmanager
def open_source(settings: EndpointSettings, pattern: str) -> Iterator[Source]:
    source = make_source(settings, [Subscription(pattern)], instance="listener")
    source.open()
    try:
        yield source
    finally:
        source.close()


@contextmanager
def open_sink(settings: EndpointSettings) -> Iterator[Sink]:
    sink = make_sink(settings, instance="speaker")
    sink.open()
    try:
        yield sink
    finally:
        sink.close()


def receive_all(source: Source, wanted: set[str]) -> list[Message]:
    """Receive and settle messages until every wanted address has arrived."""
    missing, got = set(wanted), list[Message]()
    attempts = 120  # of a quarter of a second without a message
    while missing and attempts:
        batch = source.receive(0.25)
        if batch is None:
            attempts -= 1
            continue
        got += batch.messages
        missing -= {message.address for message in batch.messages}
        batch.settle([ACCEPTED] * len(batch.messages))
    assert not missing, f"{len(missing)} did not arrive, {sorted(missing)[:3]} among them"
    return got
