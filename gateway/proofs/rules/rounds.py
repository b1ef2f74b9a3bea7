"""One round of routes: whether a name travels it, shown by sending one through the real routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from gateway.errors import LimitError
from gateway.model.pattern import Pattern
from gateway.proofs.budget import TOO_LONG
from gateway.proofs.finding import Finding, Severity
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.equations import restricted, restricted_exactly
from gateway.proofs.search.examples import example
from gateway.proofs.search.witness import Refused, Sent, attempt

LAPS = 8  # rounds of a name that never repeats because it changes
Ring = tuple[Flow, ...]
HINT = (
    "exclude from one of these routes what the others send, "
    "or send it under a prefix that no route takes"
)
BOTH = "; what a route in both directions excludes, its way back leaves alone too"


class Ending(Enum):
    """How the way of a name ends, worst first; the value completes a sentence."""

    REPEATS = "and so on without end"
    CHANGES = "and so on, changed every time"
    REFUSED = "and so on, until a target refuses the name"
    LEAVES = "and goes no further"


@dataclass(frozen=True, slots=True)
class _Run:
    hops: tuple[Sent, ...]
    ending: Ending

    def came_back(self, ring: Ring) -> bool:
        """Whether the first route took the name a second time."""
        more = len(self.hops) - len(ring)
        return more > 0 or (more == 0 and self.ending is not Ending.LEAVES)


@dataclass(frozen=True, slots=True)
class Some:
    """The names that `pattern` matches and none of `without`."""

    pattern: Pattern
    without: tuple[Pattern, ...]

    def name(self) -> tuple[str, ...] | None:
        return example([[self.pattern]], self.without)


def all_of(flow: Flow) -> Some:
    """All names that `flow` takes."""
    return Some(flow.pattern, flow.site.excludes)


def hop_back(flow: Flow, names: Sequence[Some]) -> list[Some]:
    """The names that `flow` takes and turns into one of `names`; perhaps some too many."""
    found: dict[Some, None] = {}
    for goal in names:
        without = [*flow.site.excludes]
        for unwanted in goal.without:
            without += restricted_exactly(flow, unwanted) or ()
        taken = tuple(dict.fromkeys(without))
        found |= {Some(pattern, taken): None for pattern in restricted(flow, goal.pattern)}
    return [some for some in found if some.name() is not None]


def judged(ring: Ring, names: Sequence[Some]) -> Finding | None:
    """What becomes of a name that may travel `ring`; `names` are those at its start.

    Those that travel it twice are tried first. Without any name at all nothing comes back.
    """
    try:
        again = list(names)
        for flow in reversed(ring):
            again = hop_back(flow, again)
        starts = [some.name() for some in (*again, *names)]
    except LimitError:
        return unproven(ring, f"it is open whether names travel in a round: {TOO_LONG}")
    runs = [_run(ring, levels) for levels in starts if levels is not None]
    if not runs:
        return None
    order = list(Ending)
    best = min(runs, key=lambda run: (not run.came_back(ring), order.index(run.ending)))
    if not best.came_back(ring):
        return unproven(ring, "names may travel in a round; no example came back")
    return _finding(ring, best)


def _run(ring: Ring, levels: tuple[str, ...]) -> _Run:
    """What is sent, hop by hop, until a name comes again or is not sent on."""
    hops: list[Sent] = []
    seen: set[tuple[int, tuple[str, ...]]] = set()
    for number in range(LAPS * len(ring)):
        at = number % len(ring)
        if (at, levels) in seen:
            return _Run(tuple(hops), Ending.REPEATS)
        seen.add((at, levels))
        found = attempt(ring[at].site.route, ring[at].target, levels)
        if found is None:
            return _Run(tuple(hops), Ending.LEAVES)
        if isinstance(found, Refused):
            return _Run(tuple(hops), Ending.REFUSED)
        hops.append(found)
        levels = found.arrived
    return _Run(tuple(hops), Ending.CHANGES)


def _finding(ring: Ring, run: _Run) -> Finding:
    shown = run.hops[: len(ring)]
    way = [f"{shown[0].name!r} at {ring[0].site.route.endpoint!r}"]
    way += [
        f"{hop.made!r} at {flow.target.endpoint!r} (route {flow.site.route.name!r})"
        for flow, hop in zip(ring, shown, strict=True)
    ]
    severity: Severity = "warning" if run.ending is Ending.LEAVES else "error"
    text = f"a message comes back to its route: {' -> '.join(way)}, {run.ending.value}"
    if any(flow.site.route.selector is not None for flow in ring):
        severity = "warning"
        text += ", as far as the selectors let it"
    names = (shown[0].name, *(hop.made for hop in shown))
    hint = HINT + (BOTH if any(flow.site.route.inverse for flow in ring) else "")
    ends = (ring[0].site.route.endpoint, *(flow.target.endpoint for flow in ring))
    return ring[0].site.finding("cycle", severity, text, hint, names, ends, target=ring[0].place)


def unproven(ring: Ring, reason: str) -> Finding:
    """A round that equations leave open."""
    routes = " -> ".join(repr(flow.site.route.name) for flow in (*ring, ring[0]))
    text = f"{reason}: {routes}"
    return ring[0].site.finding("possible-cycle", "warning", text, HINT, target=ring[0].place)
