"""Proof: no message comes back to a route that has sent it, through however many brokers.

Routes are followed against the flow: from the names a route takes to those that become such names
one hop before, and on until the route is met again. What is left then are the names that travel
the whole round; one of them is sent through the real routes until its names repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from gateway.errors import LimitError
from gateway.model.pattern import Pattern
from gateway.model.pattern_index import overlapping
from gateway.proofs.budget import TOO_LONG, ask
from gateway.proofs.finding import Finding
from gateway.proofs.flows.flow import Flow, numbered
from gateway.proofs.rules.rounds import Some, all_of, hop_back, judged, unproven

LONGEST = 12  # hops
HOPS = 40_000  # from one route to another that are looked for
WAYS = 4_000  # hops back that are looked at in all

Graph = dict[Flow, list[Flow]]


def cycles(flows: Sequence[Flow]) -> Iterator[Finding]:
    """A finding for each round.

    A message that comes straight back through the `inverse` of its route is known by its origin
    and dropped; longer ways are followed. Of flows that differ in their names alone the first
    stands for all.
    """
    kinds = _unlike(flows)
    every, whole = _hops_back(kinds)
    graph = _trimmed(every)
    order = {flow: at for at, flow in enumerate(kinds)}
    search = _Search(graph, order)
    seen: set[frozenset[tuple[int, int]]] = set()
    for start in graph:
        ask()
        try:
            for ring, names in search.rounds(start):
                key = frozenset((flow.site.number, flow.place) for flow in ring)
                if key not in seen and (finding := judged(ring, names)) is not None:
                    seen.add(key)
                    yield finding
        except LimitError:
            yield unproven((start,), f"it is open whether names travel in a round: {TOO_LONG}")
    if not whole or search.budget <= 0:
        flow = next(iter(graph), kinds[0])
        text = (
            "so many routes lead to each other that only some ways were followed; "
            "there may be more rounds"
        )
        hint = "mend the rounds found so far, then check again"
        yield flow.site.finding("unproven", "warning", text, hint, target=flow.place)


def _unlike(flows: Sequence[Flow]) -> list[Flow]:
    """One flow of each shape between two brokers; those with a way back stay as they are."""
    shapes = numbered(flows)
    named = {flow.site.route.inverse for flow in flows}
    found: dict[object, Flow] = {}
    for flow in flows:
        route = flow.site.route
        own = flow if route.inverse or route.name in named else None
        ends = flow.site.broker, flow.broker
        found.setdefault((shapes[flow], ends, route.selector is None, own), flow)
    return list(found.values())


def _hops_back(flows: Sequence[Flow]) -> tuple[Graph, bool]:
    """For each flow those whose made names it may take, and whether these are all."""
    graph: Graph = {flow: [] for flow in flows}
    brokers: dict[str, tuple[list[tuple[Pattern, Flow]], list[tuple[Pattern, Flow]]]] = {}
    for flow in flows:
        brokers.setdefault(flow.broker, ([], []))[0].append((flow.image, flow))
        brokers.setdefault(flow.site.broker, ([], []))[1].append((flow.pattern, flow))
    whole = True
    for made, taken in brokers.values():
        pairs = overlapping(made, taken)
        for sender, taker in islice(pairs, HOPS // len(brokers)):
            if sender.site.route.name != taker.site.route.inverse:
                graph[taker].append(sender)
        whole = whole and next(pairs, None) is None
    return graph, whole


def _trimmed(graph: Graph) -> Graph:
    """Without the flows that lie on no round."""
    kept = dict(graph)
    while True:
        senders = {sender for froms in kept.values() for sender in froms}
        inner = {
            flow: [sender for sender in froms if sender in kept]
            for flow, froms in kept.items()
            if flow in senders
        }
        inner = {flow: froms for flow, froms in inner.items() if froms}
        if inner == kept:
            return {
                flow: sorted(froms, key=lambda each: each.site.number)
                for flow, froms in inner.items()
            }
        kept = inner


@dataclass(slots=True)
class _Search:
    """Rounds of a graph. Mutable: `budget` is how many hops may still be looked at."""

    graph: Graph
    order: dict[Flow, int]
    budget: int = field(default=WAYS)

    def rounds(self, start: Flow) -> Iterator[tuple[tuple[Flow, ...], list[Some]]]:
        """Rounds that begin at `start`, their first flow, and the names there that travel them."""
        yield from self._back((start,), [all_of(start)])

    def _back(
        self, way: tuple[Flow, ...], names: list[Some]
    ) -> Iterator[tuple[tuple[Flow, ...], list[Some]]]:
        start = way[-1]
        for sender in self.graph[way[0]]:
            if self.order[sender] < self.order[start] or (sender in way and sender is not start):
                continue
            self.budget -= 1
            if self.budget <= 0:
                return
            before = hop_back(sender, names)
            if not before:
                continue
            if sender is start:
                yield (start, *way[:-1]), before
            elif len(way) < LONGEST:
                yield from self._back((sender, *way), before)
