"""A simulated source of Kafka: the servers keep a log and the group's commit, and mark nothing.

open        the source asks for the ends of the log and the commit, and the product finds the
            place (`endpoints.kafka.positions`); it commits that with its claim
read        what lies behind the place; the position in the memory says what is marked
settled     in order, so the last settled offset is the commit; a lost one is covered by the next
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.continuity import Retention
from gateway.endpoints.kafka.positions import PartitionPlace, PartitionState, claim_of, find_places
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.source_memory import SourceMemory
from gateway.model.message import Message
from tests.simulation.brokers import Broker
from tests.simulation.connections import Connection
from tests.simulation.endpoints import Flavour, SimulatedSource
from tests.simulation.sessions import Entry

_CLUSTER: Final = "cluster"


class KafkaSource(SimulatedSource):
    """A member of a group of its own, over a log of one partition. Mutable: open or closed.

    `remembers`: its memory outlives its process.
    """

    def __init__(
        self,
        broker: Broker,
        settings: EndpointSettings,
        subscriptions: Sequence[Subscription],
        flavour: Flavour,
        client: str,
        *,
        remembers: bool,
    ) -> None:
        super().__init__(broker, settings, subscriptions, flavour, client)
        self.memory = SourceMemory()
        self._remembers = remembers
        self._place: PartitionPlace | None = None

    def _subscribe(self, connection: Connection) -> Retention:
        broker = self._broker
        committed, claim = broker.commits.get(self.client, (-1, ""))
        low, high = broker.first_number, broker.last_number + 1
        state = PartitionState("a", 0, low, high, low, broker.name, committed, claim)
        [place] = find_places([state], _CLUSTER, self.memory, self.continuity)
        self._place = place
        broker.commits[self.client] = place.first, claim_of(self.memory)
        broker.sessions.pop(self.client, None)
        broker.subscribe(
            connection, self._patterns, kept=True, window=self._flavour.window, first=place.first
        )
        return Retention.NEW if place.skips else Retention.KEPT

    def _confirm(self, connection: Connection, unconfirmed: deque[Entry], count: int) -> None:
        last = unconfirmed[count - 1].number
        super()._confirm(connection, unconfirmed, count)
        assert self._place is not None
        self._place.position.settle(last)

    def _message(self, entry: Entry) -> Message:
        assert self._place is not None
        entry.redelivered = self._place.position.received(entry.number)
        handed = self._broker.handed.setdefault(self.client, set())
        if entry.number in handed and self._remembers and not entry.redelivered:
            self._broker.on_repeated(self.client, entry)
        handed.add(entry.number)
        return super()._message(entry)

    def receive(self, timeout: float) -> Batch | None:
        batch = super().receive(timeout)
        self.memory.write_late(quiet=batch is None)
        return batch

    def close(self) -> None:
        was_open = self._connection is not None
        super().close()
        if was_open:
            self.memory.write_exactly()
