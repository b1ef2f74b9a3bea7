"""A `gateway run` beside a Solace broker of ours, and a wire that can be cut."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")

from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings import EndpointSettings
from gateway.endpoints.solace_settings import SolaceSettings
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.test_run import Process

QUICK = "backoff_min: 0.05, backoff_max: 0.2"
ABORT = struct.pack("ii", 1, 0)  # linger for no time: closing sends a reset


class StoredBroker:
    """`gateway broker smf --store`, a process on one port. Mutable: it runs or does not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def settings(self, port: int = 0) -> SolaceSettings:
        return SolaceSettings(url=f"tcp://127.0.0.1:{port or self.port}", connect_timeout=5.0)

    def start(self) -> None:
        command = [sys.executable, "-m", "gateway", "broker", "smf", "--port", str(self.port)]
        self._process = subprocess.Popen(  # noqa: S603  # our own command
            [*command, "--store", str(self._folder)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rpartition(":")[2])

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()
            self._process = None


class Wire:
    """A relay of TCP connections to one port. Mutable: it has connections, until it cuts them."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.carried = 0  # bytes, both ways
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Reset every connection; returns how many ends that were."""
        with self._lock:
            ends, self._open = self._open, []
        for end in ends:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                end.shutdown(socket.SHUT_RD)
        for end in ends:
            end.close()
        return len(ends)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    def _copy(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
                self.carried += len(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def gateway(
    folder: Path, endpoints: str, routes: str, sides: Sequence[tuple[str, str]]
) -> Iterator[Process]:
    """A running gateway whose `sides` (endpoint and `source` or `sink`) are connected."""
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
def listening(settings: EndpointSettings, pattern: str) -> Iterator[Source]:
    source = make_source(settings, [Subscription(pattern)], instance="listener")
    source.open()
    try:
        yield source
    finally:
        source.close()


@contextmanager
def speaking(settings: EndpointSettings) -> Iterator[Sink]:
    sink = make_sink(settings, instance="speaker")
    sink.open()
    try:
        yield sink
    finally:
        sink.close()


def take(source: Source, wanted: set[str]) -> list[Message]:
    """Messages until every wanted address has come; each is settled."""
    missing, got = set(wanted), list[Message]()
    patience = 120  # turns of a quarter of a second without anything
    while missing and patience:
        batch = source.receive(0.25)
        if batch is None:
            patience -= 1
            continue
        got += batch.messages
        missing -= {message.address for message in batch.messages}
        batch.settle([ACCEPTED] * len(batch.messages))
    assert not missing, f"{len(missing)} did not come, {sorted(missing)[:3]} among them"
    return got
