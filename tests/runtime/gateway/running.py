"""A gateway with the configuration of a test, and a client of each broker in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from gateway.config.load import Configuration, load
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Settlement
from gateway.runtime.gateway import Gateway
from tests.archived import archived
from tests.endpoints.exchange import collect, send
from tests.systems import SYSTEMS
from tests.waiting import PATIENCE, until

Row: TypeAlias = dict[str, object]
PLANT_AND_EMS = """\
gateway: {name: test}
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: plant}
  ems: {kind: memory, dialect: ems, broker: ems}
archive: {path: archive}
"""


class BrokerClient:
    """An application at a broker in memory: publishes, and subscribes to all names."""

    def __init__(self, broker: str, dialect: str) -> None:
        settings = MemorySettings(name="client", dialect=dialect, broker=broker)
        self._sink = make_sink(settings)
        self._source = make_source(settings, [Subscription(SYSTEMS[dialect].everything)])
        self._sink.open()
        self._source.open()

    def publish(self, *messages: Message) -> list[Settlement]:
        """Publish the messages in one batch and return the answers of the broker."""
        return send(self._sink, *messages)

    def receive(self, count: int) -> list[Message]:
        """Wait for `count` messages, of this client or of the gateway."""
        return collect(self._source, count)

    def receive_available(self) -> list[Message]:
        """Return the messages that the broker already has for this client."""
        messages: list[Message] = []
        while (batch := self._source.receive(0)) is not None:
            messages += batch.messages
            batch.settle([ACCEPTED] * len(batch.messages))
        return messages

    def close(self) -> None:
        """Disconnect."""
        self._sink.close()
        self._source.close()


def configured(yaml: str) -> Configuration:
    """Read a configuration from YAML text."""
    file = Path("gateway.yaml")
    file.write_text(yaml)
    return load(file)


@contextmanager
def running(yaml: str) -> Iterator[Gateway]:
    """Run a gateway that receives from and sends to all its endpoints, and stop it at the end."""
    gateway = Gateway(configured(yaml))
    gateway.start()
    try:
        wait_until_connected(gateway)
        yield gateway
    finally:
        gateway.stop(PATIENCE)


def wait_until_connected(gateway: Gateway) -> None:
    """Wait until each sink is connected, and each source begins to receive."""
    until(lambda: all(state.connection.value == "connected" for state in gateway.states))
    until(lambda: all(pump.begun for pump in gateway.pumps.values()))


def archive_rows(leg: str | None = None) -> list[Row]:
    """Return the rows of the archive of a gateway that stopped, or those of one leg."""
    return [row for row in archived(Path()) if leg in (None, row["leg"])]
