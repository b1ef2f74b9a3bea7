"""The sessions that simulated brokers keep: pending messages, and those in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from gateway.model.message import Message
from tests.simulation.connections import Connection

Selects: TypeAlias = Callable[[str], bool]


def is_tap(client: str) -> bool:
    """Whether a client is a tap at a target; it has a source of its own."""
    return "tap-" in client


@dataclass(slots=True)
class Entry:
    """A message in a session.

    `number` counts the arrivals of its broker, and `offset` those of its partition.
    """

    number: int
    message: Message
    time: float = 0.0  # of its arrival at the broker
    redelivered: bool = False
    packet_id: int = 0  # of QoS 2, once it was sent
    received: bool = False  # by its source, at QoS 2
    partition: int = 0
    offset: int = 0

    @property
    def content(self) -> tuple[str, object]:
        """Name and payload."""
        return self.message.address, self.message.payload


@dataclass(slots=True)
class Session:
    """The messages that a broker has for one source.

    With `exactly_once` each has a packet id until its PUBCOMP (MQTT 5.0, 4.3.3); `unreleased` are
    those with a PUBREC and without a PUBCOMP. Ids are used again as soon as they are free. A
    message with an id that a restart abandoned gets a new one after a lost connection if it equals
    the message before and its source has not received it: the source could not tell them apart.
    Mutable: owned by its broker.
    """

    client: str
    selects: Selects
    kept: bool
    window: int
    pending: deque[Entry] = field(default_factory=deque)
    in_flight: dict[int, Entry] = field(default_factory=dict)
    connection: Connection | None = None
    exactly_once: bool = False
    unreleased: dict[int, tuple[str, object]] = field(default_factory=dict)
    abandoned: dict[int, tuple[str, object]] = field(default_factory=dict)
    unheard: set[int] = field(default_factory=set)  # numbers whose acknowledgements were lost
    last: int = 0  # number of the last message that was delivered for the first time

    def take(self) -> list[Entry]:
        """The pending messages that the window allows, which are in flight from now on."""
        sent: list[Entry] = []
        while self.pending and len(self.in_flight) + len(self.unreleased) < self.window:
            entry = self.pending.popleft()
            if self.exactly_once and not entry.packet_id:
                entry.packet_id = self._free_id()
            self.in_flight[entry.number] = entry
            self.last = max(entry.number, self.last)
            sent.append(entry)
        return sent

    def _free_id(self) -> int:
        used = {each.packet_id for each in (*self.in_flight.values(), *self.pending)}
        return next(each for each in count(1) if each not in used and each not in self.unreleased)

    def release(self, packet_ids: Sequence[int]) -> None:
        """Note PUBRECs: the messages are delivered."""
        for number, entry in list(self.in_flight.items()):
            if entry.packet_id in packet_ids:
                del self.in_flight[number]
                self.unreleased[entry.packet_id] = entry.content

    def complete(self, packet_ids: Sequence[int]) -> None:
        """Note PUBCOMPs: the ids are free."""
        for each in packet_ids:
            self.unreleased.pop(each, None)

    def requeue(self) -> None:
        """Put the unacknowledged messages back, marked, in their order."""
        for entry in reversed(self.in_flight.values()):
            if self.abandoned.get(entry.packet_id) == entry.content and not entry.received:
                entry.packet_id = 0
            else:
                entry.redelivered = True
            self.pending.appendleft(entry)
        self.in_flight.clear()
        self.pending = deque(sorted(self.pending, key=lambda each: each.number))
