"""Headers as a target gets them: its rules applied, what it cannot carry counted, replies spelt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TypeAlias

from gateway.clock import now
from gateway.dialects.base import Dialect
from gateway.errors import SubjectError, TranslationError
from gateway.model.message import PLAIN, Headers
from gateway.routing.headers import NO_RULES
from gateway.routing.router import Hop
from gateway.runtime.record.ledger import Counters

REMEMBERED = 10_000  # headers and hops, past which the memory starts anew
OPTIONAL_FIELDS = tuple(
    name
    for name in Headers.__dataclass_fields__
    if name not in {"mode", "redelivered", "source_id", "time", "origin"}
)
Fate: TypeAlias = tuple[Headers, tuple[str, ...]]  # as made, and the fields that cannot cross
_optional = attrgetter(*OPTIONAL_FIELDS)
_ABSENT = _optional(PLAIN)


@dataclass(frozen=True, slots=True)
class Adapted:
    """What became of headers on the way of a hop.

    It holds what it was made from, so that an identity is never another object's.
    """

    given: Headers
    hop: Hop
    fate: Fate


class Adapter:
    """For one source endpoint; mutable, it remembers.

    Most messages of a source share their headers, so what became of them is kept.
    """

    def __init__(self, gateway: str, dialect: Dialect, counters: Counters) -> None:
        self._gateway = gateway
        self._dialect = dialect
        self._counters = counters
        self._adapted: dict[tuple[int, int], Adapted] = {}

    def adapt(self, headers: Headers, hop: Hop, carries: frozenset[str]) -> Headers:
        """Headers as the target gets them, which carries the fields `carries`.

        What cannot cross is counted on the route.

        Raises:
            TranslationError: a rule of the target makes a value that does not fit its field.
        """
        known = self._adapted.get((id(headers), id(hop)))
        if known is not None and known.given is headers and known.hop is hop:
            made, lost = known.fate
        else:
            made, lost = self._adapt(headers, hop, carries)
            # Of an identity there is no other message, and rules may read the clock.
            if headers.source_id is None and hop.rules is NO_RULES:
                self._remember(Adapted(headers, hop, (made, lost)))
        if lost and hop.route is not None:
            for field in lost:
                self._counters[hop.route.name].lost(field)
        return made

    def _remember(self, adapted: Adapted) -> None:
        if len(self._adapted) >= REMEMBERED:
            self._adapted.clear()
        self._adapted[id(adapted.given), id(adapted.hop)] = adapted

    def _adapt(self, given: Headers, hop: Hop, carries: frozenset[str]) -> Fate:
        headers = hop.rules.apply(given, now()) if hop.rules is not NO_RULES else given
        lost: tuple[str, ...] = ()
        if _optional(headers) != _ABSENT:
            headers, lost = self._leave(headers, hop, carries)
        if hop.route is not None:  # also where it cannot be carried: the echo gets it back
            carried = f"{self._gateway}/{hop.route.name}"
            taken = (hop.taken,) if hop.taken else ()
            headers = headers.with_origin((*headers.origin, *taken, carried))
        return headers, lost

    def _leave(self, headers: Headers, hop: Hop, carries: frozenset[str]) -> Fate:
        """The headers with a reply address as the target spells it, and what cannot cross."""
        lost = [
            field
            for field in OPTIONAL_FIELDS
            if field not in carries and getattr(headers, field) != getattr(PLAIN, field)
        ]
        if headers.reply_to is not None and hop.target is not None and "reply_to" not in lost:
            try:
                name = hop.target.reply_name(self._dialect, headers.reply_to)
                headers = replace(headers, reply_to=name)
            except (SubjectError, TranslationError):
                lost.append("reply_to")
                headers = replace(headers, reply_to=None)
        return headers, tuple(lost)
