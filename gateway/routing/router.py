"""Which routes take a name and what it becomes at each target, remembered for names seen before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.dialects.base import Dialect, parse_subject
from gateway.errors import SubjectError, TranslationError
from gateway.model.subject import Subject
from gateway.routing.route import Route, Target
from gateway.routing.table import PatternTable
from gateway.translate.shorten import Dictionary, resolved

CACHED_NAMES = 100_000  # past this the memory starts anew; a name costs about 500 bytes


@dataclass(frozen=True, slots=True)
class Hop:
    """One copy of a message: where it goes and under which name, or why it cannot."""

    route: Route | None
    target: Target | None
    address: str
    rule: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """What one route makes of a name; `route` None when the name is at fault before any route."""

    route: Route | None
    hops: tuple[Hop, ...]


class Router(dict[str, tuple[Way, ...]]):
    """All routes of one source endpoint; `router[name]` says what each makes of that name.

    It is a dict of answers already given, so that a name seen before costs one look-up; hence
    mutable, and bounded. A name that no route takes has no ways.
    """

    def __init__(
        self, dialect: Dialect, routes: Sequence[Route], dictionary: Dictionary | None = None
    ) -> None:
        """Routes from one endpoint; `dictionary` where names that arrive may be shortened ones."""
        super().__init__()
        self.dialect = dialect
        self._dictionary = dictionary
        self._table: PatternTable[Route] = PatternTable()
        for route in routes:
            for pattern in route.source.patterns:
                self._table.add(pattern, route)

    def __missing__(self, name: str) -> tuple[Way, ...]:
        if len(self) >= CACHED_NAMES:
            self.clear()
        ways = self[name] = self._ways(name)
        return ways

    def _ways(self, name: str) -> tuple[Way, ...]:
        try:
            subject = parse_subject(name, self.dialect)
            if self._dictionary is not None:
                whole = resolved(subject.levels, name, self.dialect, self._dictionary)
                subject = Subject(whole)
        except (SubjectError, TranslationError) as error:
            return (Way(None, (Hop(None, None, "", error.rule, str(error)),)),)
        taken = (route for route in self._table.find(subject.levels) if route.takes(subject.levels))
        return tuple(Way(route, _hops(route, subject)) for route in taken)


def _hops(route: Route, subject: Subject) -> tuple[Hop, ...]:
    captures = route.source.capture(subject.levels)
    return tuple(_hop(route, target, subject, captures) for target in route.targets)


def _hop(
    route: Route, target: Target, subject: Subject, captures: dict[str, tuple[str, ...]]
) -> Hop:
    try:
        return Hop(route, target, target.name_for(subject, captures))
    except TranslationError as error:
        return Hop(route, target, "", error.rule, str(error))
