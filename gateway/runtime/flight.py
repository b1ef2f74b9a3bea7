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
from gateway.runtime.recording import BatchRecord, Copy, Origin, now


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

    def refused(self, copy: Copy) -> None:
        """Record a message that cannot go to a target because of its name."""
        hop, at = copy.hop, now()
        reason = rejected(hop.rule, hop.reason)
        self._set_aside(copy, self._batch.messages[copy.position], "", reason, 0, at)

    def sent(self) -> None:
        """One more target owes an answer."""
        with self._lock:
            self._shares += 1

    def answered(
        self,
        copies: Sequence[Copy],
        messages: Sequence[Message],
        settlements: Sequence[Settlement],
        attempts: int,
    ) -> None:
        """Record what one target made of its copies, and land when it was the last to answer."""
        at = now()
        rows: list[Rows] = []
        for group in _by_target(copies):
            hop = copies[group[0]].hop
            if hop.route is None or hop.target is None:
                continue
            taken = [i for i in group if settlements[i].outcome is Outcome.ACCEPTED]
            kept = [i for i in group if settlements[i].outcome is Outcome.SPOOLED]
            if taken:
                positions = [copies[i].position for i in taken]
                made = [messages[i] for i in taken]
                rows.append(self._record.delivered(hop, positions, made, attempts, at))
                waited = (at - self._origin.time) / 1_000_000
                self._ledger.counters[hop.route.name].delivers(len(taken), waited)
            if kept:
                end = self._end(hop, copies, messages, kept)
                rows.append(end.spooled(kept, at))
                self._ledger.counters[hop.route.name].spools(len(kept))
            for i in group:
                if settlements[i].outcome is Outcome.REJECTED:
                    endpoint = hop.target.endpoint
                    self._set_aside(copies[i], messages[i], endpoint, settlements[i], attempts, at)
        with self._lock:
            self._rows += rows
        self.release()

    def identity(self, position: int) -> bytes:
        """The id of the message at `position` in the batch."""
        return self._record.identity(position)

    def ends(self, copies: Sequence[Copy], messages: Sequence[Message]) -> list[End]:
        """What the archive will say when the target has its copies; for those that go to disk."""
        return [
            self._end(copies[group[0]].hop, copies, messages, group) for group in _by_target(copies)
        ]

    def release(self) -> None:
        """Give one share back; the last one records the rows and then settles the source."""
        with self._lock:
            self._shares -= 1
            if self._shares:
                return
        self._ledger.write(self._rows, self._letters, self._settle)

    def _end(
        self, hop: Hop, copies: Sequence[Copy], messages: Sequence[Message], group: Sequence[int]
    ) -> End:
        positions = [copies[i].position for i in group]
        made = [messages[i] for i in group]
        rows = self._record.delivered(hop, positions, made, 0, 0)
        return End(tuple(group), rows, self._origin.endpoint)

    def _set_aside(  # noqa: PLR0913, PLR0917  # the facts of one dead letter
        self,
        copy: Copy,
        message: Message,
        endpoint: str,
        settled: Settlement,
        attempts: int,
        at: int,
    ) -> None:
        hop, origin = copy.hop, self._origin
        name = message.address if endpoint else hop.address
        letter = Letter(
            number=0,
            time=at,
            id=self._record.identity(copy.position),
            route=hop.route.name if hop.route else "",
            source=origin.endpoint,
            source_name=self._batch.messages[copy.position].address,
            target=hop.label,
            endpoint=endpoint,
            rule=settled.rule,
            reason=settled.reason,
            attempts=attempts,
            message=message,
        )
        with self._lock:
            self._rows.append(self._record.dead(copy, name, settled, at))
            self._letters.append(letter)
        self._ledger.set_aside(letter)

    def _settle(self) -> None:
        self._batch.settle([ACCEPTED] * len(self._batch.messages))
        self.landed(self)
        self._landing.land()


def _by_target(copies: Sequence[Copy]) -> list[list[int]]:
    """Indices of the copies by route and label, so that each group shares what its rows share."""
    groups: dict[tuple[int, str], list[int]] = {}
    for index, copy in enumerate(copies):
        groups.setdefault((id(copy.hop.route), copy.hop.label), []).append(index)
    return list(groups.values())
