"""Proof: no message comes back to a route that has sent it, through any number of brokers.

The search follows routes against the flow: from the names that a route takes to the source names
of the previous hop, until it reaches the route again. The remaining names travel the whole cycle;
one of them is sent through the real routes until its names repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.overlap_index import candidate_pairs
from gateway.model.pattern import Pattern
from gateway.proofs.budget import SEARCH_TOO_LONG, start_question
from gateway.proofs.finding import RouteFinding, Severity
from gateway.proofs.flows.flow import Flow, shape_numbers
from gateway.proofs.search.equations import exact_source_patterns, source_patterns
from gateway.proofs.search.examples import exact_pattern, find_example
from gateway.proofs.search.translated_name import TranslatedName, translate_name

MAX_LAPS = 8  # laps of a name that changes and so never repeats
HINT = (
    "exclude from one of these routes what the others send, "
    "or send it under a prefix that no route takes"
)
NOT_PROVED = f"it is not proved that no name travels in a cycle: {SEARCH_TOO_LONG}"
BOTH_DIRECTIONS_HINT = "; the reverse route of `direction: both` has the same excludes"

Cycle: TypeAlias = tuple[Flow, ...]


class Ending(Enum):
    """The end of a trace, worst first; the value completes a sentence."""

    REPEATS = "and so on without end"
    CHANGES = "and so on, changed every time"
    REFUSED = "and so on, until a target refuses the name"
    LEAVES = "and goes no further"


@dataclass(frozen=True, slots=True)
class Trace:
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


def names_before(flow: Flow, names: Sequence[NameSet]) -> list[NameSet]:
    """Return the names that `flow` translates to `names`, possibly with further names."""
    found: dict[NameSet, None] = {}
    for goal in names:
        without = [*flow.source.excludes]
        for unwanted in goal.without:
            without += exact_source_patterns(flow, unwanted) or ()
        distinct = tuple(dict.fromkeys(without))
        patterns = source_patterns(flow, goal.pattern)
        found |= {NameSet(pattern, distinct): None for pattern in patterns}
    return [each for each in found if each.example() is not None]


def judge_cycle(
    cycle: Cycle,
    names: Sequence[NameSet],
    find: Callable[[Cycle, Trace], RouteFinding | None] | None = None,
) -> RouteFinding | None:
    """Return the finding about a cycle; `names` may travel it, from its first flow.

    Names that travel it twice are tried first. None when no name exists. `find` words the finding
    about a name that came back.
    """
    try:
        again = list(names)
        for flow in reversed(cycle):
            again = names_before(flow, again)
        starts = [each.example() for each in (*again, *names)]
    except SearchBudgetExceeded:
        return unproven_cycle(cycle, NOT_PROVED)
    traces = [_trace(cycle, levels) for levels in starts if levels is not None]
    if not traces:
        return None
    order = list(Ending)
    worst = min(traces, key=lambda each: (not each.came_back(cycle), order.index(each.ending)))
    if not worst.came_back(cycle):
        return unproven_cycle(cycle, "names may travel in a cycle; no example came back")
    return (find or cycle_finding)(cycle, worst)


def _trace(cycle: Cycle, levels: tuple[str, ...]) -> Trace:
    """Translate a name hop by hop, until it repeats or is not sent on."""
    hops: list[TranslatedName] = []
    seen: set[tuple[int, tuple[str, ...]]] = set()
    first = levels
    for number in range(MAX_LAPS * len(cycle)):
        at = number % len(cycle)
        if (at, levels) in seen:
            return Trace(tuple(hops), Ending.REPEATS)
        seen.add((at, levels))
        goals = [cycle[(at + 1) % len(cycle)].pattern]
        if at == len(cycle) - 1:
            goals.insert(0, exact_pattern(first))
        found = translate_name(cycle[at].source.route, cycle[at].target, levels, goals)
        if not isinstance(found, TranslatedName):
            return Trace(tuple(hops), Ending.LEAVES if found is None else Ending.REFUSED)
        hops.append(found)
        levels = found.target_levels
    return Trace(tuple(hops), Ending.CHANGES)


def cycle_finding(cycle: Cycle, trace: Trace) -> RouteFinding:
    """Return the finding about a cycle that a name travels."""
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


MAX_CYCLE_LENGTH = 12  # hops
MAX_EDGES = 40_000  # from one route to the next
MAX_STEPS_BACK = 4_000  # hops that are followed in all

Graph: TypeAlias = dict[Flow, list[Flow]]  # a flow, and the flows that may send to it
Station: TypeAlias = tuple[str, frozenset[NameSet]]  # a broker, and names there
Judge: TypeAlias = Callable[[Cycle, Sequence[NameSet]], RouteFinding | None]


def prove_cycles(
    flows: Sequence[Flow],
    judge: Judge = judge_cycle,
    *,
    apart: Callable[[Flow], object] = lambda _: None,
    longest: int = MAX_CYCLE_LENGTH,
    shortcuts: bool = False,
) -> Iterator[RouteFinding]:
    """Yield a finding for each cycle of up to `longest` hops.

    With `shortcuts`, no cycle around shorter ones over the same names is sought.

    The gateway drops a message that comes straight back through the `inverse` of its route, by
    its origin path; such a pair is not a cycle. The first of several flows that differ
    only in the names of their routes represents all; flows for which `apart` differs are distinct.
    """
    distinct = _distinct_flows(flows, apart)
    senders, complete = _senders(distinct)
    graph = _trim(senders)
    search = _Search(graph, {flow: at for at, flow in enumerate(distinct)}, longest, shortcuts)
    seen: set[frozenset[tuple[int, int]]] = set()
    for start in graph:
        start_question()
        try:
            own = NameSet(start.pattern, start.source.excludes)
            for cycle, names in search.cycles((start,), [own]):
                key = frozenset((flow.source.number, flow.target_index) for flow in cycle)
                if key not in seen and (finding := judge(cycle, names)) is not None:
                    seen.add(key)
                    yield finding
        except SearchBudgetExceeded:
            yield unproven_cycle((start,), NOT_PROVED)
    if not complete or search.steps_left <= 0:
        flow = next(iter(graph), distinct[0])
        text = (
            "too many routes lead to each other: only some paths were followed, "
            "and there may be more cycles"
        )
        hint = "mend the cycles found so far, then check again"
        yield flow.finding("unproven", "warning", text, hint)


def _distinct_flows(flows: Sequence[Flow], apart: Callable[[Flow], object]) -> list[Flow]:
    """Return one flow of each shape between two brokers, and every flow with an inverse."""
    shapes = shape_numbers(flows)
    inverses = {flow.source.route.inverse for flow in flows}
    found: dict[object, Flow] = {}
    for flow in flows:
        route = flow.source.route
        own = flow if route.inverse or route.name in inverses else None
        brokers = flow.source.broker, flow.broker
        key = shapes[flow], brokers, route.selector is None, own, apart(flow)
        found.setdefault(key, flow)
    return list(found.values())


def _senders(flows: Sequence[Flow]) -> tuple[Graph, bool]:
    """Return for each flow the flows whose names it may take, and whether these are all."""
    graph: Graph = {flow: [] for flow in flows}
    brokers: dict[str, tuple[list[tuple[Pattern, Flow]], list[tuple[Pattern, Flow]]]] = {}
    for flow in flows:
        brokers.setdefault(flow.broker, ([], []))[0].append((flow.target_pattern, flow))
        brokers.setdefault(flow.source.broker, ([], []))[1].append((flow.pattern, flow))
    complete = True
    for sent, taken in brokers.values():
        pairs = candidate_pairs(sent, taken)
        for sender, taker in islice(pairs, MAX_EDGES // len(brokers)):
            if sender.source.route.name != taker.source.route.inverse:
                graph[taker].append(sender)
        complete = complete and next(pairs, None) is None
    for senders in graph.values():
        senders.sort(key=lambda each: each.source.number)
    return graph, complete


def _trim(graph: Graph) -> Graph:
    """Remove the flows that lie on no cycle."""
    kept: Graph = {}
    inner = graph
    while inner != kept:
        kept = inner
        sending = {sender for senders in kept.values() for sender in senders}
        inner = {
            flow: found
            for flow, senders in kept.items()
            if flow in sending and (found := [each for each in senders if each in kept])
        }
    return kept


@dataclass(slots=True)
class _Search:
    """The search for cycles in a graph.

    Mutable: `steps_left` counts down the hops that may still be followed.
    """

    graph: Graph
    order: dict[Flow, int]
    longest: int
    shortcuts: bool
    steps_left: int = field(default=MAX_STEPS_BACK)

    def cycles(
        self, path: Cycle, names: list[NameSet], passed: frozenset[Station] = frozenset()
    ) -> Iterator[tuple[Cycle, list[NameSet]]]:
        """Yield the cycles that end with `path`, begun by its last flow, and the names there.

        `names` travel the path. With `shortcuts`, no path comes to the names of a broker twice:
        what lies between is a cycle of its own. `passed` are the brokers and names of the path.
        """
        start = path[-1]
        passed |= {(path[0].source.broker, frozenset(names))} if self.shortcuts else frozenset()
        for sender in self.graph[path[0]]:
            if self.order[sender] < self.order[start] or (sender in path and sender is not start):
                continue
            self.steps_left -= 1
            if self.steps_left <= 0:
                return
            before = names_before(sender, names)
            if before and sender is start:
                yield (start, *path[:-1]), before
            elif (sender.source.broker, frozenset(before)) in passed:
                continue
            elif before and len(path) < self.longest:
                yield from self.cycles((sender, *path), before, passed)
