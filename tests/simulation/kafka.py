"""A simulated source of Kafka: the servers keep logs and the group's commits, and mark nothing.

open        the source asks for the ends of its logs and for the commits, and the product finds the
            places (`endpoints.kafka.positions`); it commits those with its claim
read        what lies behind the places; the positions in the memory say what is marked
settled     in order, so the last settled offsets are the commits; a lost one is covered by the next
borrowed    another member of the group has a partition for a time, reads there, and commits
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.continuity import Retention
from gateway.endpoints.kafka.positions import PartitionPlace, PartitionState, claim_of, find_places
from gateway.endpoints.settings.base import EndpointSettings
from gateway.model.message import Message
from tests.simulation.brokers import Broker
from tests.simulation.connections import Connection
from tests.simulation.endpoints import Flavour, SimulatedSource
from tests.simulation.sessions import Entry

_CLUSTER: Final = "cluster"


class KafkaSource(SimulatedSource):
    """A member of a group, over the partitions of a topic. Mutable: open or closed.

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
        self._remembers = remembers
        self._places: dict[int, PartitionPlace] = {}

    def _subscribe(self, connection: Connection) -> Retention:
        broker = self._broker
        limits = zip(broker.log_begins, broker.log_ends, strict=True)
        states = [
            PartitionState(
                "a", at, low, high, low, broker.name,
                *broker.commits.get((self.client, at), (-1, "")),
            )
            for at, (low, high) in enumerate(limits)
            if at not in broker.borrowed
        ]  # fmt: skip
        places = find_places(states, _CLUSTER, self.memory, self.continuity)
        self._places = {each.number: each for each in places}
        claim = claim_of(self.memory)
        broker.commits.update({(self.client, e.number): (e.first, claim) for e in places})
        broker.sessions.pop(self.client, None)
        broker.subscribe(
            connection, self._patterns, kept=True, window=self._flavour.window,
            begins={each.number: each.first for each in places},
        )  # fmt: skip
        return Retention.NEW if any(each.skips for each in places) else Retention.KEPT

    def _confirm(self, connection: Connection, unconfirmed: deque[Entry], count: int) -> None:
        settled = [unconfirmed[at] for at in range(count)]
        super()._confirm(connection, unconfirmed, count)
        claim, commits = claim_of(self.memory), dict[tuple[str, int], tuple[int, str]]()
        for each in settled:
            if (place := self._places.get(each.partition)) is not None:  # not at another member
                place.position.settle(each.offset)
                commits[self.client, each.partition] = place.position.settled + 1, claim
        connection.up.put(("commit", 0, commits))

    def _message(self, entry: Entry) -> Message:
        entry.redelivered = self._places[entry.partition].position.received(entry.offset)
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
