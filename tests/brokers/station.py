"""A gateway with a source at a real broker, and the gaps that it records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from gateway.archive.gaps import SourceGap, merge_gaps
from gateway.config.load import load
from gateway.model.message import DeliveryMode, Headers
from gateway.runtime.gateway import Gateway
from tests.archived import archived
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.wire import Wire
from tests.waiting import PATIENCE, until

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
MakeWire: TypeAlias = Callable[[int], Wire]
CONFIG = """\
gateway: {{name: test}}
endpoints:
  source: {{{source}, backoff_min: 0.05, backoff_max: 0.2}}
  target: {{kind: memory, dialect: mqtt, broker: gaps}}
routes:
  relay:
    from: {{endpoint: source, pattern: "{pattern}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
archive: {{path: {archive}}}
"""


class Station:
    """A gateway with one source, and its archive."""

    def __init__(self, folder: Path, source: str, pattern: str = "src/{rest...}") -> None:
        self.folder, self.config = folder, folder / "gateway.yaml"
        archive = folder / "archive"
        self.config.write_text(CONFIG.format(source=source, pattern=pattern, archive=archive))

    @contextmanager
    def running(self) -> Iterator[Gateway]:
        gateway = Gateway(load(self.config))
        gateway.start()
        try:
            self.wait(gateway, 0)
            yield gateway
        finally:
            gateway.stop(PATIENCE)

    def wait(self, gateway: Gateway, reconnects: int) -> None:
        """Wait until the source has connected again so many times."""
        state = gateway.pumps["source"].state
        until(lambda: state.connection.value == "connected" and state.reconnects >= reconnects)

    def gaps(self) -> list[SourceGap]:
        return merge_gaps(row for row in archived(self.folder) if row["leg"] == "gap")


class Plant(Station):
    """A gateway with a source at a mosquitto."""

    def __init__(
        self, folder: Path, broker: Mosquitto, options: str = "qos: 1", port: int = 0
    ) -> None:
        source = f"kind: mqtt, host: 127.0.0.1, port: {port or broker.port}, {options}"
        super().__init__(folder, source)


@pytest.fixture
def relay() -> Iterator[MakeWire]:
    """Return a function that makes a relay before the port of a broker."""
    wires: list[Wire] = []

    def make(port: int) -> Wire:
        wires.append(Wire(port))
        return wires[-1]

    yield make
    for wire in wires:
        wire.close()
