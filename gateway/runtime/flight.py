"""One received batch on its way: it settles the source when every end is known and recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from gateway.archive.records import Rows
from gateway.endpoints.base import Batch
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement, rejected
from gateway.routing.route import Route
from gateway.routing.router import Hop, Way
from gateway.runtime.dead_letters import Letter
from gateway.runtime.duplicates import Landing
from gateway.runtime.ledger import Ledger
from gateway.runtime.packing import End
from gateway.runtime.recording import BatchRecord, Origin, now


class Share:
    """What one lane gets of a batch, entry by entry; mutable while it is put together."""

    __slots__ = ("hops", "messages", "positions")

    def __init__(self) -> None:
        self.positions: list[int] = []  # in the batch
        self.hops: list[Hop] = []
        self.messages: list[Message] = []  # as the target gets them

    def by_target(self) -> list[Sequence[int]]:
        """Indices of the entries by route and label: each group shares what its rows share."""
        hops = self.hops
        labels = [hop.label for hop in hops]
        if labels.count(labels[0]) == len(labels) and len({id(hop.route) for hop in hops}) == 1:
            return [range(len(hops))]
        groups: dict[tuple[int, str], list[int]] = {}
        for index, hop in enumerate(hops):
            groups.setdefault((id(hop.route), hop.label), []).append(index)
        return list(groups.values())

    def part(self, group: Sequence[int]) -> tuple[Sequence[int], Sequence[Message]]:
        """Positions in the batch, and messages, of the entries in `group`."""
        if len(group) == len(self.positions):
            return self.positions, self.messages
        return [self.positions[i] for i in group], [self.messages[i] for i in group]


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

    def received(self, route: Route, positions: Sequence[int], ways: Sequence[Way]) -> None:
        """Record that `route` took the messages at `positions`, each on its way."""
        self._rows.append(self._record.received(route, positions, ways))
        self._ledger.counters[route.name].took(len(positions), self._record.size(positions))

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
        for group in share.by_target():
            hop = share.hops[group[0]]
            if hop.route is None or hop.target is None:
                continue
            taken = group
            if not all_taken:
                taken = [i for i in group if settlements[i].outcome is Outcome.ACCEPTED]
            if taken:
                positions, made = share.part(taken)
                rows.append(self._record.delivered(hop, positions, made, attempts, at))
                waited = (at - self._origin.time) / 1_000_000
                self._ledger.counters[hop.route.name].delivers(len(taken), waited)
            if all_taken:
                continue
            kept = [i for i in group if settlements[i].outcome is Outcome.SPOOLED]
            if kept:
                rows.append(self._end(share, kept).spooled(kept, at))
                self._ledger.counters[hop.route.name].spools(len(kept))
            for i in group:
                if settlements[i].outcome is Outcome.REJECTED:
                    position, message = share.positions[i], share.messages[i]
                    endpoint, settled = hop.target.endpoint, settlements[i]
                    self._set_aside(hop, position, message, endpoint, settled, attempts, at)
        with self._lock:
            self._rows += rows
        self.release()

    def identity(self, position: int) -> bytes:
        """The id of the message at `position` in the batch."""
        return self._record.identity(position)

    def ends(self, share: Share) -> list[End]:
        """What the archive will say when the target has its copies; for those that go to disk."""
        return [self._end(share, group) for group in share.by_target()]

    def release(self) -> None:
        """Give one share back; the last one records the rows and then settles the source."""
        with self._lock:
            self._shares -= 1
            if self._shares:
                return
        self._ledger.write(self._rows, self._letters, self._settle)

    def _end(self, share: Share, group: Sequence[int]) -> End:
        positions, made = share.part(group)
        rows = self._record.delivered(share.hops[group[0]], positions, made, 0, 0)
        return End(tuple(group), rows, self._origin.endpoint)

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
