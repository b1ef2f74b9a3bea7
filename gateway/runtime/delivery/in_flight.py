"""One received batch on its way: it settles the source when every end is known and recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence

from gateway.archive.journal.records import Rows
from gateway.clock import now
from gateway.endpoints.base import Batch
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement, rejected
from gateway.routing.route import Route
from gateway.routing.router import Hop, Way
from gateway.runtime.inbound.dedup import Landing
from gateway.runtime.outbound.dead_letters import Letter
from gateway.runtime.outbound.spool_codec import End
from gateway.runtime.record.ledger import Ledger
from gateway.runtime.record.rows import BatchRecord, Origin


class Share:
    """What one lane gets of a batch, entry by entry; mutable while it is put together."""

    __slots__ = ("hops", "messages", "positions")

    def __init__(self) -> None:
        self.positions: list[int] = []  # in the batch
        self.hops: list[Hop] = []
        self.messages: list[Message] = []  # as the target gets them

    def by_target(self, indices: Sequence[int]) -> Iterable[Sequence[int]]:
        """`indices` of entries, by route and label."""
        hops = self.hops
        return _grouped(indices, [(id(hops[at].route), hops[at].label) for at in indices])

    def by_conversion(self, indices: Sequence[int]) -> Iterable[Sequence[int]]:
        """`indices` of entries, by whether they were converted: those can share rows."""
        hops = [self.hops[at] for at in indices]
        return _grouped(
            indices, [hop.target is None or hop.target.conversion is None for hop in hops]
        )

    def part(self, group: Sequence[int]) -> tuple[Sequence[Hop], Sequence[int], Sequence[Message]]:
        """Hops, positions in the batch, and messages, of the entries in `group`."""
        if len(group) == len(self.positions):
            return self.hops, self.positions, self.messages
        hops, positions = [self.hops[i] for i in group], [self.positions[i] for i in group]
        return hops, positions, [self.messages[i] for i in group]


class Flight:
    """Counts what is still out; mutable, and touched by the threads of all its targets.

    The one who opens it holds one share, so that it cannot land before everything is handed over.
    """

    def __init__(self, batch: Batch, origin: Origin, ledger: Ledger, landing: Landing) -> None:
        self._batch = batch
        self._origin = origin
        self._record = BatchRecord(batch.messages, origin)
        self._ledger = ledger
        self._lock = threading.Lock()
        self._shares = 1
        self._rows: list[Rows] = []
        self._letters: list[Letter] = []
        self._landing = landing
        self.landed: Callable[[Flight], None] = lambda _: None

    def received(self, positions: Sequence[int], ways: Sequence[Way]) -> None:
        """Record that the routes of `ways` took the messages at `positions`."""
        rows = self._record.received(positions, ways)
        with self._lock:
            self._rows.append(rows)
        for route, indices in _by_route([way.route for way in ways]):
            every = len(indices) == len(positions)
            mine = positions if every else [positions[i] for i in indices]
            self._ledger.counters[route.name].took(len(indices), self._record.size(mine))

    def refused(self, position: int, hop: Hop) -> None:
        """Record a message that cannot go to a target because of its name."""
        reason = rejected(hop.rule, hop.reason)
        self._set_aside(hop, position, self._batch.messages[position], "", reason, 0, now())

    def sent(self) -> None:
        """One more target owes an answer."""
        with self._lock:
            self._shares += 1

    def answered(self, share: Share, settlements: Sequence[Settlement], attempts: int) -> None:
        """Record what one target made of its copies, and land when it was the last to answer."""
        at = now()
        rows: list[Rows] = []
        all_taken = settlements.count(ACCEPTED) == len(settlements)
        every = range(len(settlements))
        taken = every if all_taken else _those(Outcome.ACCEPTED, settlements)
        for group in share.by_conversion(taken):
            hops, positions, made = share.part(group)
            rows.append(self._record.delivered(hops, positions, made, attempts, at))
            waited = (at - self._origin.time) / 1_000_000
            for route, indices in _by_route([hop.route for hop in hops]):
                self._ledger.counters[route.name].delivers(len(indices), waited)
        if not all_taken:
            rows += self._left(share, settlements, attempts, at)
        with self._lock:
            self._rows += rows
        self.release()

    def identity(self, position: int) -> bytes:
        """The id of the message at `position` in the batch."""
        return self._record.identity(position)

    def ends(self, share: Share) -> list[End]:
        """What the archive will say when the target has its copies; for those that go to disk."""
        every = range(len(share.hops))
        return [self._end(share, group) for group in share.by_target(every)]

    def release(self) -> None:
        """Give one share back; the last one records the rows and then settles the source."""
        with self._lock:
            self._shares -= 1
            if self._shares:
                return
        self._ledger.write(self._rows, self._letters, self._settle)

    def _end(self, share: Share, group: Sequence[int]) -> End:
        rows = self._record.delivered(*share.part(group), 0, 0)
        return End(tuple(group), rows, self._origin.endpoint)

    def _left(
        self, share: Share, settlements: Sequence[Settlement], attempts: int, at: int
    ) -> list[Rows]:
        """Rows of what the disk has now; what was refused is set aside."""
        rows: list[Rows] = []
        for group in share.by_target(_those(Outcome.SPOOLED, settlements)):
            rows.append(self._end(share, group).spooled(group, at))
            for route, indices in _by_route([share.hops[i].route for i in group]):
                self._ledger.counters[route.name].spools(len(indices))
        for i in _those(Outcome.REJECTED, settlements):
            hop, position, message = share.hops[i], share.positions[i], share.messages[i]
            endpoint = hop.target.endpoint if hop.target else ""
            self._set_aside(hop, position, message, endpoint, settlements[i], attempts, at)
        return rows

    def _set_aside(  # noqa: PLR0913, PLR0917  # the facts of one dead letter
        self,
        hop: Hop,
        position: int,
        message: Message,
        endpoint: str,
        settled: Settlement,
        attempts: int,
        at: int,
    ) -> None:
        origin = self._origin
        name = message.address if endpoint else hop.address
        letter = Letter(
            number=0,
            time=at,
            id=self._record.identity(position),
            route=hop.route.name if hop.route else "",
            source=origin.endpoint,
            source_name=self._batch.messages[position].address,
            target=hop.label,
            endpoint=endpoint,
            rule=settled.rule,
            reason=settled.reason,
            attempts=attempts,
            message=message,
        )
        with self._lock:
            self._rows.append(self._record.dead(hop, position, name, settled, at))
            self._letters.append(letter)
        self._ledger.set_aside(letter)

    def _settle(self) -> None:
        self._batch.settle([ACCEPTED] * len(self._batch.messages))
        self.landed(self)
        self._landing.land()


def _those(outcome: Outcome, settlements: Sequence[Settlement]) -> list[int]:
    return [i for i, settled in enumerate(settlements) if settled.outcome is outcome]


def _by_route(routes: Sequence[Route | None]) -> Iterable[tuple[Route, Sequence[int]]]:
    """Each of `routes` with the indices where it is."""
    indices = _grouped(range(len(routes)), [*map(id, routes)])
    found = [(routes[group[0]], group) for group in indices]
    return [(route, group) for route, group in found if route is not None]


def _grouped(indices: Sequence[int], keys: Sequence[Hashable]) -> Iterable[Sequence[int]]:
    """`indices` by their `keys`; as they are when those are all the same."""
    if not keys or keys.count(keys[0]) == len(keys):
        return [indices] if keys else []
    groups: dict[Hashable, list[int]] = {}
    for index, key in zip(indices, keys, strict=True):
        groups.setdefault(key, []).append(index)
    return groups.values()
