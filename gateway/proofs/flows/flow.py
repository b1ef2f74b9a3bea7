"""Routes as the proofs see them: which parts of a source name stand where in the made name.

A route has a flow for each target and each pattern of its source. Every wildcard of the pattern
is an unknown, known by its place; `made` says level by level what the target's name holds of
them. Nothing here looks at a concrete name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.proofs.finding import Finding, Severity
from gateway.routing.functions import Function
from gateway.routing.route import Route, Target


@dataclass(frozen=True, slots=True)
class Var:
    """One level of the source name: what the wildcard at place `at` of the pattern took."""

    at: int


@dataclass(frozen=True, slots=True)
class Seq:
    """All levels that the rest wildcard at place `at` of the pattern took."""

    at: int


@dataclass(frozen=True, slots=True)
class Cut:
    """What functions that lose something leave of the unknowns in `places`.

    `one` says that the capture is one level, `many` that any number of levels may come of it.
    """

    places: tuple[int, ...]
    functions: tuple[Function, ...]
    one: bool
    many: bool


Part: TypeAlias = str | Var | Cut
Made: TypeAlias = Seq | Cut | tuple[Part, ...]
Symbol: TypeAlias = "Seq | tuple[str | Var, ...]"


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """A route of the set: its number there, which source of its name it is, and its broker."""

    number: int
    route: Route
    source: int
    broker: str
    patterns: tuple[Pattern, ...]
    excludes: tuple[Pattern, ...]

    def finding(  # noqa: PLR0913, PLR0917  # the parts of one finding
        self,
        rule: str,
        severity: Severity,
        text: str,
        hint: str,
        example: Sequence[str] = (),
        ends: Sequence[str] = (),
        *,
        target: int | None = None,
    ) -> Finding:
        """A finding about this route; without `ends` all names of `example` are its source's."""
        at = tuple(ends) or (self.route.endpoint,) * len(example)
        what = (rule, severity, text, hint, tuple(example), at)
        return Finding(self.route.name, self.source, target, *what)


@dataclass(frozen=True, eq=False, slots=True)
class Flow:
    """What one target of a route makes of the names that one pattern takes.

    `target` has one template; a target with several tags has a flow for each.
    """

    site: Site
    place: int
    target: Target
    broker: str
    pattern: Pattern
    made: tuple[Made, ...]
    image: Pattern  # all names it makes, and more where a wildcard is used twice

    @property
    def words(self) -> dict[int, str]:
        """What a person calls the unknowns: `{name}` for a capture."""
        known = symbols(self.pattern)
        part = self.site.route.dialect.part
        words = {at: f"{part} {at + 1}" for at in range(len(known))}
        for name, span in reversed(self.site.route.source.spans):
            dots = "..." if span.rest else ""
            for at in places_of(known[span.start : span.stop]):
                if not name.isdigit() or words[at][0] != "{":
                    words[at] = f"{{{name}{dots}}}"
        return words

    @property
    def ends(self) -> tuple[str, str]:
        """Its endpoints: where it takes names, and where it makes them."""
        return self.site.route.endpoint, self.target.endpoint

    @property
    def repeats(self) -> bool:
        """Whether an unknown stands twice in the made name."""
        parts = [part for level in self.made for part in parts_of(level)]
        places = [part.at for part in parts if isinstance(part, Seq | Var)]
        return len(set(places)) < len(places)

    @property
    def keeps(self) -> bool:
        """Whether the name stays what it is."""
        return self.target.template is None


def symbols(pattern: Pattern) -> tuple[Symbol, ...]:
    """The levels of a name that `pattern` takes, as unknowns."""
    found: list[Symbol] = []
    for at, level in enumerate(pattern.levels):
        match level:
            case Literal(text):
                found.append((text,))
            case AnyMany():
                found.append(Seq(at))
            case Glob() | AnyOne():
                found.append((Var(at),))
    return tuple(found)


def places_of(symbols_taken: Sequence[Symbol]) -> tuple[int, ...]:
    """The unknowns among `symbols_taken`."""
    found: list[int] = []
    for symbol in symbols_taken:
        each = [symbol] if isinstance(symbol, Seq) else symbol
        found += [part.at for part in each if not isinstance(part, str)]
    return tuple(found)


def cuts_of(flow: Flow) -> Iterator[Cut]:
    """Its calls of functions that lose something."""
    for level in flow.made:
        yield from (part for part in parts_of(level) if isinstance(part, Cut))


def parts_of(level: Made) -> tuple[Part | Seq, ...]:
    """What stands in one made level, or in a run of them."""
    return level if isinstance(level, tuple) else (level,)


def spread(pattern: Pattern, levels: Sequence[str]) -> list[tuple[str, ...]]:
    """The levels that each level of `pattern` takes, of a name that it matches."""
    found: list[tuple[str, ...]] = []
    at = 0
    for number, level in enumerate(pattern.levels):
        size = 1
        if isinstance(level, AnyMany):
            behind = Pattern(pattern.levels[number + 1 :])
            sizes = range(level.minimum, len(levels) - at + 1)
            size = next((size for size in sizes if matches(behind, levels[at + size :])), 0)
        found.append(tuple(levels[at : at + size]))
        at += size
    return found


def numbered(flows: Sequence[Flow]) -> dict[Flow, int]:
    """A number for each flow, the same for all that make the same of the same names."""
    known: dict[object, int] = {}
    return {flow: known.setdefault(_shape(flow), len(known)) for flow in flows}


def _shape(flow: Flow) -> object:
    """All that decides what a name becomes; dialects are told apart by being one object."""
    route, target = flow.site.route, flow.target
    renderer = target.renderer
    return (
        (flow.pattern, id(route.dialect), route.source, route.excludes, route.tags.along),
        (target.template, target.also, target.allow, id(renderer.dialect)),
        (renderer.escape, renderer.length, renderer.replacement, renderer.replies),
    )
