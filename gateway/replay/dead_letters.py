"""Dead letters sent again, by a process of its own beside the gateway; what arrives is recorded."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, Step
from gateway.clock import now
from gateway.config.load import Configuration
from gateway.errors import TranslationError
from gateway.model.message import Message
from gateway.model.outcome import Outcome, Settlement, rejected
from gateway.replay.outbox import TOGETHER, Outbox
from gateway.routing.router import Hop, Router
from gateway.runtime.outbound.dead_letters import REMOVE, Letter
from gateway.runtime.record.rows import fingerprint


@dataclass(frozen=True, slots=True)
class Attempt:
    """A letter on its way again: the endpoint and the message it gets, or why it cannot."""

    letter: Letter
    endpoint: str
    message: Message
    settled: Settlement | None = None  # set when it cannot be sent


class Resend:
    """Sends letters again and takes those away that arrive; mutable, it has sinks open."""

    def __init__(self, configuration: Configuration, database: sqlite3.Connection) -> None:
        self._configuration = configuration
        self._database = database
        self._outbox = Outbox(configuration, "resend")
        self._routers: dict[str, Router] = {}
        self._left: Counter[int] = Counter()  # copies of each letter that have not arrived

    def plan(self, letters: Iterable[Letter]) -> Iterator[Attempt]:
        """What becomes of each letter.

        What a target rejected goes to it as it was; what could not be translated goes through the
        mapping as it is now.
        """
        for letter in letters:
            if letter.endpoint:
                yield self._as_it_was(letter)
            else:
                yield from self._routed(letter)

    def send(self, attempts: Sequence[Attempt]) -> Iterator[tuple[Attempt, Settlement]]:
        """Send what can be sent, and say how each ended; letters that arrived are gone then."""
        self._left = Counter(each.letter.number for each in attempts)
        for endpoint, group in groupby(attempts, key=lambda each: each.endpoint):
            waiting = list(group)
            for start in range(0, len(waiting), TOGETHER):
                part = waiting[start : start + TOGETHER]
                settled = self._outbox.send(
                    endpoint, [each.message for each in part if not each.settled]
                )
                ends = iter(settled)
                results = [each.settled or next(ends) for each in part]
                self._record(list(zip(part, results, strict=True)))
                yield from zip(part, results, strict=True)

    def close(self) -> None:
        self._outbox.close()

    def _as_it_was(self, letter: Letter) -> Attempt:
        if letter.endpoint in self._configuration.endpoints:
            return Attempt(letter, letter.endpoint, letter.message)
        reason = f"the configuration has no endpoint {letter.endpoint!r} any more"
        return Attempt(letter, letter.endpoint, letter.message, rejected("no-endpoint", reason))

    def _routed(self, letter: Letter) -> Iterator[Attempt]:
        hops = [hop for hop in self._hops(letter) if hop.target is not None]
        if not hops:
            reason = "no route of the configuration takes it to that target"
            yield Attempt(letter, "", letter.message, rejected("no-route", reason))
        for hop in hops:
            yield self._through(letter, hop)

    def _through(self, letter: Letter, hop: Hop) -> Attempt:
        target = hop.target
        if target is None or hop.rule:
            return Attempt(letter, "", letter.message, rejected(hop.rule, hop.reason))
        try:
            message = self._outbox.make(letter.message, hop, self._router(letter.source).dialect)
        except TranslationError as error:
            return Attempt(letter, "", letter.message, rejected(error.rule, str(error)))
        found = replace(letter, route=hop.route.name if hop.route else letter.route)
        return Attempt(replace(found, target=hop.label), target.endpoint, message)

    def _hops(self, letter: Letter) -> list[Hop]:
        """The hops to the letter's target; all of them when no route took it at the time."""
        if not any(route.endpoint == letter.source for route in self._configuration.routes):
            return []
        ways = self._router(letter.source)[letter.source_name]
        return [
            hop
            for way in ways
            for hop in way.hops
            if not letter.route
            or (way.route and way.route.name == letter.route and hop.label == letter.target)
        ]

    def _router(self, endpoint: str) -> Router:
        if endpoint not in self._routers:
            routes = [each for each in self._configuration.routes if each.endpoint == endpoint]
            self._routers[endpoint] = Router(routes[0].dialect, routes)
        return self._routers[endpoint]

    def _record(self, ended: Sequence[tuple[Attempt, Settlement]]) -> None:
        """The archive first, then the letters go: a crash in between shows a duplicate."""
        arrived = [each for each, settled in ended if settled.outcome is Outcome.ACCEPTED]
        self._outbox.record([self._row(each) for each in arrived])
        for each in arrived:
            self._left[each.letter.number] -= 1
            if not self._left[each.letter.number]:  # each of its copies has arrived
                self._database.execute(REMOVE, (each.letter.number,))

    def _row(self, attempt: Attempt) -> Rows:
        letter, message, at = attempt.letter, attempt.message, now()
        size, digest = fingerprint(message.payload)
        sent_as_it_came = fingerprint(letter.message.payload)[1] == digest
        step = Step.ACCEPTED if sent_as_it_came else Step.CONVERTED
        common: dict[str, Cell] = {
            "route": letter.route,
            "leg": Leg.DELIVERED.value,
            "endpoint": attempt.endpoint,
            "system": self._configuration.endpoints[attempt.endpoint].settings.dialect,
            "target": letter.target,
            "name": message.address,
            "source_name": letter.source_name,
            "id": letter.id,
            "attempt": letter.attempts + 1,
            "time": at,
            "received": letter.time,
            "mode": int(message.headers.mode),
            "size": size,
            "hash": digest,
            "outcome": step.value,
        }
        return Rows(1, common)
