"""One received batch on its way: it settles the source when every end is known and recorded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from gateway.archive.records import Rows
from gateway.endpoints.base import Batch
from gateway.errors import ArchiveError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement, rejected
from gateway.routing.route import Route
from gateway.routing.router import Way
from gateway.runtime.recording import BatchRecord, Copy, Origin, now
from gateway.runtime.state import RouteCounters

log = logging.getLogger(__name__)

Archive: TypeAlias = Callable[[Sequence[Rows], Callable[[], None]], None]
Counters: TypeAlias = Mapping[str, RouteCounters]


class Flight:
    """Counts what is still out; mutable, and touched by the threads of all its targets.

    The one who opens it holds one share, so that it cannot land before everything is handed over.
    """

    def __init__(
        self, batch: Batch, origin: Origin, archive: Archive | None, counters: Counters
    ) -> None:
        self._batch = batch
        self._record = BatchRecord(batch.messages, origin)
        self._archive = archive
        self._counters = counters
        self._lock = threading.Lock()
        self._shares = 1
        self._rows: list[Rows] = []
        self.landed: Callable[[Flight], None] = lambda _: None

    def received(self, route: Route, positions: Sequence[int], ways: Sequence[Way]) -> None:
        """Record that `route` took the messages at `positions`, each on its way."""
        self._rows.append(self._record.received(route, positions, ways))
        self._counters[route.name].took(len(positions), self._record.size(positions))

    def refused(self, copy: Copy) -> None:
        """Record a message that cannot go to a target because of its name."""
        hop = copy.hop
        with self._lock:
            reason = rejected(hop.rule, hop.reason)
            self._rows.append(self._record.dead(copy, hop.address, reason, now()))
        if hop.route is not None:
            self._set_aside(hop.route.name, hop.rule)
        elif self._archive is None:  # no route counts it and no row keeps it
            log.warning("a message is lost: %s", hop.rule)

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
            if taken:
                positions = [copies[i].position for i in taken]
                made = [messages[i] for i in taken]
                rows.append(self._record.delivered(hop, positions, made, attempts, at))
                self._counters[hop.route.name].delivers(len(taken))
            if len(taken) < len(group):
                for i in group:
                    if settlements[i].outcome is not Outcome.ACCEPTED:
                        rows.append(
                            self._record.dead(copies[i], messages[i].address, settlements[i], at)
                        )
                        self._set_aside(hop.route.name, settlements[i].rule)
        with self._lock:
            self._rows += rows
        self.release()

    def _set_aside(self, route: str, rule: str) -> None:
        if self._counters[route].set_aside(rule):
            kept = "in the archive" if self._archive else "nowhere: there is no archive"
            log.warning("first dead letter, kept %s", kept, extra={"route": route, "rule": rule})

    def release(self) -> None:
        """Give one share back; the last one records the rows and then settles the source."""
        with self._lock:
            self._shares -= 1
            if self._shares:
                return
        if self._archive is None:
            self._settle()
            return
        try:
            self._archive(self._rows, self._settle)
        except ArchiveError as error:  # it is closed: the source keeps the batch
            log.warning("a batch stays unsettled: %s", error)

    def _settle(self) -> None:
        self._batch.settle([ACCEPTED] * len(self._batch.messages))
        self.landed(self)


def _by_target(copies: Sequence[Copy]) -> list[list[int]]:
    """Indices of the copies by route and label, so that each group shares what its rows share."""
    groups: dict[tuple[int, str], list[int]] = {}
    for index, copy in enumerate(copies):
        groups.setdefault((id(copy.hop.route), copy.hop.label), []).append(index)
    return list(groups.values())
