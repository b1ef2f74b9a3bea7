"""Judge one cycle of routes by a name sent through the real routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.pattern import Pattern
from gateway.proofs.budget import SEARCH_TOO_LONG
from gateway.proofs.finding import RouteFinding, Severity
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.equations import exact_source_patterns, source_patterns
from gateway.proofs.search.examples import find_example
from gateway.proofs.search.translated_name import RefusedName, TranslatedName, translate_name

MAX_LAPS = 8  # laps of a name that changes and so never repeats
HINT = (
    "exclude from one of these routes what the others send, "
    "or send it under a prefix that no route takes"
)
NOT_PROVED = "it is not proved that no name travels in a cycle"
BOTH_DIRECTIONS_HINT = "; the reverse route of `direction: both` has the same excludes"

Cycle: TypeAlias = tuple[Flow, ...]


class Ending(Enum):
    """The end of a trace, worst first; the value completes a sentence."""

    REPEATS = "and so on without end"
    CHANGES = "and so on, changed every time"
    REFUSED = "and so on, until a target refuses the name"
    LEAVES = "and goes no further"


@dataclass(frozen=True, slots=True)
class _Trace:
    """The translations of a name around a cycle."""

    hops: tuple[TranslatedName, ...]
    ending: Ending

    def came_back(self, cycle: Cycle) -> bool:
        """Return whether the first route took the name a second time."""
        more = len(self.hops) - len(cycle)
        return more > 0 or (more == 0 and self.ending is not Ending.LEAVES)


@dataclass(frozen=True, slots=True)
class NameSet:
    """The names that `pattern` matches and no pattern of `without`."""

    pattern: Pattern
    without: tuple[Pattern, ...]

    def example(self) -> tuple[str, ...] | None:
        """Return the levels of one name; None when the set is empty."""
        return find_example([[self.pattern]], self.without)


def source_names(flow: Flow) -> NameSet:
    """Return the names that `flow` takes."""
    return NameSet(flow.pattern, flow.source.excludes)


def names_before(flow: Flow, names: Sequence[NameSet]) -> list[NameSet]:
    """Return the names that `flow` translates to `names`, possibly with further names."""
    found: dict[NameSet, None] = {}
    for goal in names:
        without = [*flow.source.excludes]
        for unwanted in goal.without:
            without += exact_source_patterns(flow, unwanted) or ()
        distinct = tuple(dict.fromkeys(without))
        found |= {
            NameSet(pattern, distinct): None for pattern in source_patterns(flow, goal.pattern)
        }
    return [each for each in found if each.example() is not None]


def judge_cycle(cycle: Cycle, names: Sequence[NameSet]) -> RouteFinding | None:
    """Return the finding about a cycle; `names` may travel it, from its first flow.

    Names that travel it twice are tried first. None when no name exists.
    """
    try:
        again = list(names)
        for flow in reversed(cycle):
            again = names_before(flow, again)
        starts = [each.example() for each in (*again, *names)]
    except SearchBudgetExceeded:
        return unproven_cycle(cycle, f"{NOT_PROVED}: {SEARCH_TOO_LONG}")
    traces = [_trace(cycle, levels) for levels in starts if levels is not None]
    if not traces:
        return None
    order = list(Ending)
    worst = min(traces, key=lambda each: (not each.came_back(cycle), order.index(each.ending)))
    if not worst.came_back(cycle):
        return unproven_cycle(cycle, "names may travel in a cycle; no example came back")
    return _finding(cycle, worst)


def _trace(cycle: Cycle, levels: tuple[str, ...]) -> _Trace:
    """Translate a name hop by hop, until it repeats or is not sent on."""
    hops: list[TranslatedName] = []
    seen: set[tuple[int, tuple[str, ...]]] = set()
    for number in range(MAX_LAPS * len(cycle)):
        at = number % len(cycle)
        if (at, levels) in seen:
            return _Trace(tuple(hops), Ending.REPEATS)
        seen.add((at, levels))
        found = translate_name(cycle[at].source.route, cycle[at].target, levels)
        if found is None:
            return _Trace(tuple(hops), Ending.LEAVES)
        if isinstance(found, RefusedName):
            return _Trace(tuple(hops), Ending.REFUSED)
        hops.append(found)
        levels = found.target_levels
    return _Trace(tuple(hops), Ending.CHANGES)


def _finding(cycle: Cycle, trace: _Trace) -> RouteFinding:
    first, hops = cycle[0], trace.hops[: len(cycle)]
    stations = [f"{hops[0].source_name!r} at {first.source.route.endpoint!r}"]
    stations += [
        f"{hop.target_name!r} at {flow.target.endpoint!r} (route {flow.source.route.name!r})"
        for flow, hop in zip(cycle, hops, strict=True)
    ]
    severity: Severity = "warning" if trace.ending is Ending.LEAVES else "error"
    text = f"a message comes back to its route: {' -> '.join(stations)}, {trace.ending.value}"
    if any(flow.source.route.selector is not None for flow in cycle):
        severity = "warning"
        text += ", as far as the selectors let it"
    names = (hops[0].source_name, *(hop.target_name for hop in hops))
    both = any(flow.source.route.inverse for flow in cycle)
    hint = HINT + (BOTH_DIRECTIONS_HINT if both else "")
    endpoints = (first.source.route.endpoint, *(flow.target.endpoint for flow in cycle))
    return first.finding("cycle", severity, text, hint, names, endpoints)


def unproven_cycle(cycle: Cycle, reason: str) -> RouteFinding:
    """Return the warning that a cycle is neither proved nor excluded."""
    first = cycle[0]
    routes = " -> ".join(repr(flow.source.route.name) for flow in (*cycle, first))
    text = f"{reason}: {routes}"
    return first.finding("possible-cycle", "warning", text, HINT)
