"""Proof: no message comes back to a route that has sent it, through any number of brokers.

The search follows routes against the flow: from the names that a route takes to the source names
of the previous hop, until it reaches the route again. The remaining names travel the whole cycle;
one of them is sent through the real routes until its names repeat (`cycle_trace`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.pattern import Pattern
from gateway.model.pattern_index import candidate_pairs
from gateway.proofs.budget import SEARCH_TOO_LONG, start_question
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import Flow, shape_numbers
from gateway.proofs.rules.cycle_trace import (
    NOT_PROVED,
    Cycle,
    NameSet,
    judge_cycle,
    names_before,
    source_names,
    unproven_cycle,
)

MAX_CYCLE_LENGTH = 12  # hops
MAX_EDGES = 40_000  # from one route to the next
MAX_STEPS_BACK = 4_000  # hops that are followed in all

Graph: TypeAlias = dict[Flow, list[Flow]]  # a flow, and the flows that may send to it


def prove_cycles(flows: Sequence[Flow]) -> Iterator[RouteFinding]:
    """Yield a finding for each cycle.

    The gateway drops a message that comes straight back through the `inverse` of its route, by
    its origin path; such a pair is no cycle. The first of several flows that differ
    only in the names of their routes represents all.
    """
    distinct = _distinct_flows(flows)
    senders, complete = _senders(distinct)
    graph = _trim(senders)
    search = _Search(graph, {flow: at for at, flow in enumerate(distinct)})
    seen: set[frozenset[tuple[int, int]]] = set()
    for start in graph:
        start_question()
        try:
            for cycle, names in search.cycles(start):
                key = frozenset((flow.source.number, flow.target_index) for flow in cycle)
                if key not in seen and (finding := judge_cycle(cycle, names)) is not None:
                    seen.add(key)
                    yield finding
        except SearchBudgetExceeded:
            reason = f"{NOT_PROVED}: {SEARCH_TOO_LONG}"
            yield unproven_cycle((start,), reason)
    if not complete or search.steps_left <= 0:
        flow = next(iter(graph), distinct[0])
        text = (
            "too many routes lead to each other: only some paths were followed, "
            "and there may be more cycles"
        )
        hint = "mend the cycles found so far, then check again"
        yield flow.finding("unproven", "warning", text, hint)


def _distinct_flows(flows: Sequence[Flow]) -> list[Flow]:
    """Return one flow of each shape between two brokers, and every flow with an inverse."""
    shapes = shape_numbers(flows)
    inverses = {flow.source.route.inverse for flow in flows}
    found: dict[object, Flow] = {}
    for flow in flows:
        route = flow.source.route
        own = flow if route.inverse or route.name in inverses else None
        brokers = flow.source.broker, flow.broker
        found.setdefault((shapes[flow], brokers, route.selector is None, own), flow)
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
    return graph, complete


def _trim(graph: Graph) -> Graph:
    """Remove the flows that lie on no cycle."""
    kept = dict(graph)
    while True:
        sending = {sender for senders in kept.values() for sender in senders}
        inner = {
            flow: [sender for sender in senders if sender in kept]
            for flow, senders in kept.items()
            if flow in sending
        }
        inner = {flow: senders for flow, senders in inner.items() if senders}
        if inner == kept:
            return {
                flow: sorted(senders, key=lambda each: each.source.number)
                for flow, senders in inner.items()
            }
        kept = inner


@dataclass(slots=True)
class _Search:
    """The search for cycles in a graph.

    Mutable: `steps_left` counts down the hops that may still be followed.
    """

    graph: Graph
    order: dict[Flow, int]
    steps_left: int = field(default=MAX_STEPS_BACK)

    def cycles(self, start: Flow) -> Iterator[tuple[Cycle, list[NameSet]]]:
        """Yield the cycles whose first flow is `start`, and the names there that travel them."""
        yield from self._back((start,), [source_names(start)])

    def _back(self, path: Cycle, names: list[NameSet]) -> Iterator[tuple[Cycle, list[NameSet]]]:
        start = path[-1]
        for sender in self.graph[path[0]]:
            if self.order[sender] < self.order[start] or (sender in path and sender is not start):
                continue
            self.steps_left -= 1
            if self.steps_left <= 0:
                return
            before = names_before(sender, names)
            if not before:
                continue
            if sender is start:
                yield (start, *path[:-1]), before
            elif len(path) < MAX_CYCLE_LENGTH:
                yield from self._back((sender, *path), before)
