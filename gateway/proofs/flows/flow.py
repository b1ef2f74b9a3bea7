"""Flows: the target name of a route as an expression in the levels of the source name.

A route has one flow for each target and each pattern of its source. Each wildcard of the pattern
is a variable, identified by its position in the pattern. `target_levels` says for each level of
the target name which variables it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gateway.dialects.parts import boundary_of, divided
from gateway.model.chain import Single
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.proofs.finding import RouteFinding, Severity
from gateway.routing.route import Route, Target
from gateway.routing.template_functions import TemplateFunction

THE_KEY = "the key"


@dataclass(frozen=True, slots=True)
class LevelVariable:
    """One level of the source name: the match of the wildcard at `position` of the pattern."""

    position: int

    @property
    def positions(self) -> tuple[int, ...]:
        return (self.position,)


@dataclass(frozen=True, slots=True)
class RestVariable:
    """A run of levels: the match of the rest wildcard at `position` of the pattern."""

    position: int


@dataclass(frozen=True, slots=True)
class LossyCall:
    """A capture behind functions that are not injective, over the variables in `positions`.

    `single_level` says that the capture is one level. `field`: it is this field of the message,
    as it is.
    """

    positions: tuple[int, ...]
    functions: tuple[TemplateFunction, ...]
    single_level: bool
    field: str = ""


Part: TypeAlias = str | LevelVariable | LossyCall
TargetLevel: TypeAlias = RestVariable | LossyCall | tuple[Part, ...]
SourceLevel: TypeAlias = "RestVariable | tuple[str | LevelVariable, ...]"


@dataclass(frozen=True, eq=False, slots=True)
class RouteSource:
    """One source of a route: a `Route` with its number in the set, and its patterns.

    `source_index` counts the sources with the same route name, from 0. `broker` identifies the
    broker of the source.
    """

    number: int
    route: Route
    source_index: int
    broker: str
    patterns: tuple[Pattern, ...]
    excludes: tuple[Pattern, ...]

    def finding(  # noqa: PLR0913  # the parts of one finding
        self,
        rule: str,
        severity: Severity,
        text: str,
        hint: str,
        example: Sequence[str] = (),
        endpoints: Sequence[str] = (),
        *,
        target: int | None = None,
    ) -> RouteFinding:
        """Return a finding about this route; without `endpoints` all examples are source names."""
        endpoints = tuple(endpoints) or (self.route.endpoint,) * len(example)
        what = (rule, severity, text, hint, tuple(example), endpoints)
        return RouteFinding(self.route.name, self.source_index, target, *what)


@dataclass(frozen=True, eq=False, slots=True)
class Flow:
    """The translation of the names of one pattern for one target.

    `target` has one template at most; a target with several templates has one flow for each.
    `broker` identifies the broker of the target. `target_pattern` matches every target name, and
    further names when a wildcard is used twice.
    """

    source: RouteSource
    target_index: int
    target: Target
    broker: str
    pattern: Pattern
    target_levels: tuple[TargetLevel, ...]
    target_pattern: Pattern

    def finding(  # the parts of one finding
        self,
        rule: str,
        severity: Severity,
        text: str,
        hint: str,
        example: Sequence[str] = (),
        endpoints: Sequence[str] = (),
    ) -> RouteFinding:
        """Return a finding about this target; without `endpoints` all examples are source names."""
        what = (rule, severity, text, hint, example, endpoints)
        return self.source.finding(*what, target=self.target_index)

    @property
    def variable_names(self) -> dict[int, str]:
        """The name of each variable for a finding: `{name}` for a capture."""
        known = source_levels(self.pattern)
        part = self.source.route.dialect.level_noun
        words = {at: f"{part} {at + 1}" for at in range(len(known))}
        if self.source.route.source.parts:
            words |= dict.fromkeys(range(boundary_of(known) + 1, len(known)), THE_KEY)
        for name, span in reversed(self.source.route.source.spans):
            dots = "..." if span.rest else ""
            for at in variable_positions(span.taken(known)):
                if not name.isdigit() or words[at][0] != "{":
                    words[at] = f"{{{name}{dots}}}"
        return words

    @property
    def endpoints(self) -> tuple[str, str]:
        """The endpoints of the source and of the target."""
        return self.source.route.endpoint, self.target.endpoint

    @property
    def parts(self) -> list[Part | RestVariable]:
        """The parts of the target name, whatever level they stand in."""
        found: list[Part | RestVariable] = []
        for level in self.target_levels:
            found += level if isinstance(level, tuple) else (level,)
        return found

    @property
    def shown_variables(self) -> list[int]:
        """The positions of the variables in the target name, outside of calls."""
        variables = (RestVariable, LevelVariable)
        return [part.position for part in self.parts if isinstance(part, variables)]

    @property
    def limited_variables(self) -> list[int]:
        """The positions of the variables that limits of the target concern: of a topic, or all."""
        if self.target.renderer.dialect.key is None:
            return self.shown_variables
        topic, *_ = divided(self.target_levels)
        return replace(self, target_levels=tuple(topic)).shown_variables

    @property
    def lossy_calls(self) -> list[LossyCall]:
        """The captures behind functions that are not injective."""
        return [part for part in self.parts if isinstance(part, LossyCall)]

    @property
    def has_fields(self) -> bool:
        """Whether messages bring a part of the target name, which may then have any text."""
        return bool(self.target.name_fields)

    @property
    def shown_fields(self) -> str:
        """The fields in the target name, for a finding."""
        names = dict.fromkeys(each.name for each in self.target.name_fields)
        return " and ".join(f"{{{name}}}" for name in names)

    @property
    def repeats_variable(self) -> bool:
        """Whether a variable stands twice in the target name."""
        return len(set(self.shown_variables)) < len(self.shown_variables)

    @property
    def keeps_name(self) -> bool:
        """Whether the target keeps the source name."""
        return not self.target.templates


def source_levels(pattern: Pattern) -> tuple[SourceLevel, ...]:
    """Return the levels of a source name as texts and variables."""
    found: list[SourceLevel] = []
    for at, level in enumerate(pattern.levels):
        match level:
            case Literal(text):
                found.append((text,))
            case AnyMany():
                found.append(RestVariable(at))
            case Glob() | AnyOne():
                found.append((LevelVariable(at),))
    return tuple(found)


def filled(level: Single, text: str) -> str:
    """Return a level of a name, with `text` in place of the wildcards of `level`."""
    match level:
        case Literal(fixed):
            return fixed
        case Glob(parts):
            return parts[0] + text + "".join(parts[1:])
        case AnyOne():
            return text


def variable_positions(levels: Sequence[SourceLevel]) -> tuple[int, ...]:
    """Return the positions of the variables in `levels`."""
    found: list[int] = []
    for level in levels:
        parts = [level] if isinstance(level, RestVariable) else level
        found += [part.position for part in parts if not isinstance(part, str)]
    return tuple(found)


def levels_by_position(pattern: Pattern, levels: Sequence[str]) -> list[tuple[str, ...]]:
    """Divide the levels of a matching name among the levels of `pattern`."""
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


def shape_numbers(flows: Sequence[Flow]) -> dict[Flow, int]:
    """Number the flows; flows with the same names and the same translation have one number."""
    known: dict[object, int] = {}
    return {flow: known.setdefault(_shape(flow), len(known)) for flow in flows}


def _shape(flow: Flow) -> object:
    """Return all that determines the translation; dialects are compared by identity."""
    route, target = flow.source.route, flow.target
    renderer = target.renderer
    return (
        (flow.pattern, id(route.dialect), route.source, route.excludes, route.tags.require_tags),
        (target.templates, target.allow, id(renderer.dialect), flow.target_pattern),
        (renderer.on_unmappable, renderer.on_too_long, renderer.replacement, renderer.replies),
    )
