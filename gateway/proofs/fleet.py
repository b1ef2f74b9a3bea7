"""Proofs over the routes of several gateways: no message circles, none arrives twice.

A name of a gateway and one of its own make the names of routes and endpoints here: `GATEWAY:NAME`.
A finding about one gateway that its own proofs make is left out. Brokers are joined by what the
files state, and by equal addresses: a finding that needs the latter begins with its condition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.overlap_index import OverlapIndex
from gateway.proofs.budget import SEARCH_TOO_LONG, search_budget, start_question
from gateway.proofs.finding import RouteFinding, Severity
from gateway.proofs.flows.carried_names import carried_names
from gateway.proofs.flows.flow import Flow
from gateway.proofs.flows.target_expressions import extract_flows
from gateway.proofs.rules.allowed import restrict_to_allowed
from gateway.proofs.rules.cycles import (
    Cycle,
    Ending,
    NameSet,
    Trace,
    cycle_finding,
    judge_cycle,
    prove_cycles,
)
from gateway.proofs.rules.overlap import (
    MAX_FINDINGS_PER_RULE,
    NARROW_HINT,
    copied_finding,
    more_hint,
)
from gateway.proofs.rules.overlap_search import find_copies
from gateway.proofs.search.samples import translated_trials
from gateway.routing.route import Route, unrecorded

MAX_PAIRS = 4_000  # pairs of flows of two gateways that are searched
BEFORE = "but for the origin path: it is cut before it comes back"
BEHIND = "but for the origin path: it is cut when it has come back"
SECOND = "but for the origin path: it is cut in its second round"
CUT_HINT = "nothing to do where both ways are wanted"
TWICE_HINT = (
    f"{CUT_HINT}; then a message arrives twice where both ways meet: two gateways read its first"
    " broker, and each gives it an id of its own"
)
NAMED_HINT = "write the same `broker_id` at all endpoints of each broker: then it is cut before"


@dataclass(frozen=True, slots=True)
class FleetEndpoint:
    """An endpoint of a gateway, and what the files say about its broker.

    `broker` is equal for endpoints that are joined, `stated` for those that the files themselves
    join, and `own` for those that their own file joins. `path` is the form in which messages carry
    the origin path there, empty without one; `address` is for a finding.
    """

    gateway: str
    broker: str
    stated: str
    own: str
    broker_id: str = ""
    path: str = ""
    address: str = ""


Fleet: TypeAlias = Mapping[str, FleetEndpoint]  # by GATEWAY:ENDPOINT
Meeting: TypeAlias = tuple[
    str, str
]  # two endpoints where a message passes from one gateway to another


def prove_fleet(routes: Sequence[Route], fleet: Fleet) -> list[RouteFinding]:
    """Return the findings about routes of different gateways, or about brokers that others join."""
    brokers = {name: each.broker for name, each in fleet.items()}
    _, every = extract_flows(unrecorded(routes), brokers)
    with search_budget():
        flows = [part for flow in every for part in _allowed_parts(flow)]
    flows += [each.names for each in carried_names(flows, routes, brokers)]
    with search_budget():
        found = list(_prove_doubles(flows, fleet))
    if flows:
        with search_budget():
            judge = _CycleJudge(fleet)
            cycles = prove_cycles(
                flows,
                judge,
                apart=lambda flow: flow.endpoints,
                longest=len(flows),
                shortcuts=True,
            )
            found += [*cycles, *judge.more()]
    return found


def _allowed_parts(flow: Flow) -> list[Flow]:
    start_question()
    try:
        return restrict_to_allowed(flow)[0]
    except SearchBudgetExceeded:
        return [flow]  # the proof of its own file says so


def _conditional(finding: RouteFinding, meetings: Iterable[Meeting], fleet: Fleet) -> RouteFinding:
    """Return the finding behind the condition that unlike endpoints have one broker."""
    assumed = [
        _pair_text(one, other, fleet)
        for one, other in dict.fromkeys(meetings)
        if fleet[one].stated != fleet[other].stated
    ]
    if not assumed:
        return finding
    brokers = "are one broker" if len(assumed) == 1 else "are one broker each"
    return replace(finding, text=f"if {', and '.join(assumed)} {brokers}: {finding.text}")


def _pair_text(one: str, other: str, fleet: Fleet) -> str:
    """Return two endpoints that are joined, with the address of each where they differ."""
    own = {fleet[one].broker_id, fleet[other].broker_id}
    if len(own) == 1 and "" not in own and fleet[one].address != fleet[other].address:
        return f"{one!r} ({fleet[one].address}) and {other!r} ({fleet[other].address})"
    return f"{one!r} and {other!r} ({fleet[one].address})"


@dataclass(slots=True)
class _CycleJudge:
    """The findings about cycles that no gateway finds alone.

    Mutable: counts the findings of each route. Cycles over the same brokers have one finding.
    """

    fleet: Fleet
    told: set[object] = field(default_factory=set)
    found: dict[str, list[Severity]] = field(default_factory=dict)
    left_out: dict[str, Flow] = field(default_factory=dict)

    def __call__(self, cycle: Cycle, names: Sequence[NameSet]) -> RouteFinding | None:
        if self._is_known(cycle):
            return None
        finding = judge_cycle(cycle, names, self._finding)
        if finding is None:
            return None
        finding = _conditional(finding, _meetings(cycle), self.fleet)
        hops = frozenset((flow.source.broker, flow.broker) for flow in cycle)
        if (key := (hops, finding.rule, finding.severity)) in self.told:
            return None
        self.told.add(key)
        found = self.found.setdefault(finding.route, [])
        found.append(finding.severity)
        if len(found) > MAX_FINDINGS_PER_RULE:
            self.left_out[finding.route] = cycle[0]
            return None
        return finding

    def more(self) -> Iterator[RouteFinding]:
        """Yield a note for each route with cycles that are not reported."""
        for route, flow in self.left_out.items():
            text = "names of this route travel in still more cycles; only the first are reported"
            yield flow.finding("more", "note", text, more_hint(self.found[route]))

    def _is_known(self, cycle: Cycle) -> bool:
        """Return whether the gateway of a cycle finds it alone."""
        ends = [(self.fleet[one], self.fleet[other]) for one, other in _meetings(cycle)]
        gateways = {end.gateway for pair in ends for end in pair}
        return len(gateways) == 1 and all(one.own == other.own for one, other in ends)

    def _finding(self, cycle: Cycle, trace: Trace) -> RouteFinding | None:
        """Return the finding about a cycle, as severe as what the gateways do about it at run time.

        A route cuts a message whose origin path names it, and one whose path names the broker and
        name to send to. So a cycle with the path on every hop ends at the route that it began with,
        or before, where both know the broker by one `broker_id`. With one hop without the path, the
        second round begins a new one there, which the hop meets at its own broker.
        """
        if _is_composed(cycle, trace):
            return None
        finding = cycle_finding(cycle, trace)
        meetings = _meetings(cycle)
        pairs = [(self.fleet[one], self.fleet[other]) for one, other in meetings]
        blind = [at for at, (one, other) in enumerate(pairs) if not _carried(one, other)]
        named = all(_is_named(*pair) for pair in pairs)
        same = named and trace.ending is Ending.REPEATS
        if not blind:
            if same:
                hint = TWICE_HINT if _goes_both_ways(cycle, pairs) else CUT_HINT
                return _cut(finding, trace, "note", BEFORE, hint)
            return _cut(finding, trace, "warning", BEHIND, finding.hint if named else NAMED_HINT)
        one, other = meetings[blind[0]]
        what = f"the origin path does not cross from {one!r} to {other!r}"
        if same and len(blind) == 1:
            return _cut(finding, trace, "warning", f"{SECOND}: {what}", finding.hint)
        if trace.ending is Ending.LEAVES:
            return finding
        return replace(finding, text=f"{finding.text}; no gateway cuts it: {what}")


def _is_composed(cycle: Cycle, trace: Trace) -> bool:
    """Return whether the name is at one broker twice, so that the part between is a cycle."""
    pairs = zip(cycle, trace.hops, strict=False)
    stations = {(flow.source.broker, hop.source_levels) for flow, hop in pairs}
    return len(stations) < len(cycle)


def _goes_both_ways(cycle: Cycle, pairs: Sequence[tuple[FleetEndpoint, FleetEndpoint]]) -> bool:
    """Return whether a message goes round by both ways and meets itself at a third broker."""
    both = len(cycle) > 2 and all(flow.source.route.inverse for flow in cycle)  # noqa: PLR2004
    return both and any(one.gateway != other.gateway for one, other in pairs)


def _carried(one: FleetEndpoint, other: FleetEndpoint) -> bool:
    """Return whether what `one` sends reaches `other` with its origin path."""
    return bool(one.path) and one.path == other.path


def _is_named(one: FleetEndpoint, other: FleetEndpoint) -> bool:
    """Return whether both know their broker by one name at run time."""
    if one.broker_id or other.broker_id:
        return one.broker_id == other.broker_id
    return one.own == other.own


def _cut(
    finding: RouteFinding, trace: Trace, severity: Severity, ending: str, hint: str
) -> RouteFinding:
    """Return the finding about a cycle that the gateways cut, with another ending."""
    text = finding.text.replace(f", {trace.ending.value}", f", {ending}")
    return replace(finding, severity=severity, text=text, hint=hint)


def _meetings(cycle: Cycle) -> list[Meeting]:
    """Return the target of each flow with the source of the next one."""
    behind = (*cycle[1:], cycle[0])
    return [
        (flow.target.endpoint, after.source.route.endpoint)
        for flow, after in zip(cycle, behind, strict=True)
    ]


def _prove_doubles(flows: Sequence[Flow], fleet: Fleet) -> Iterator[RouteFinding]:
    """Yield each message that routes of two gateways take from one broker to another one."""
    doubles = _Doubles(fleet)
    taken: defaultdict[tuple[str, str], OverlapIndex[Flow]] = defaultdict(OverlapIndex)
    for flow in flows:
        beside = taken[flow.source.broker, flow.broker]
        yield from doubles.findings(flow, beside.candidates(flow.pattern))
        beside.add(flow.pattern, flow)


class _Doubles:
    """The pairs of flows that may carry one message.

    Mutable: counts pairs and findings.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._trials = cache(translated_trials)
        self._pairs = MAX_PAIRS
        self._told: set[tuple[int, int]] = set()

    def findings(self, flow: Flow, others: Iterator[Flow]) -> Iterator[RouteFinding]:
        """Yield the findings about `flow` and each of `others`, which may repeat."""
        found: list[Severity] = []
        for other in dict.fromkeys(others):
            pair = other.source.number, flow.source.number
            if pair in self._told or self._is_known(other, flow) or _divide(other, flow):
                continue
            self._pairs -= 1
            if self._pairs < 0:
                text = "routes of other gateways may carry its messages, too: too many pairs"
                yield flow.finding("unproven", "warning", text, NARROW_HINT)
                return
            if (finding := self._finding(other, flow)) is not None:
                self._told.add(pair)
                found.append(finding.severity)
                yield finding
            if len(found) >= MAX_FINDINGS_PER_RULE:
                text = "still more routes may carry messages of this one; only the first are told"
                yield flow.finding("more", "note", text, more_hint(found))
                return

    def _finding(self, one: Flow, other: Flow) -> RouteFinding | None:
        start_question()
        try:
            copies = find_copies(one, other, self._trials)
        except SearchBudgetExceeded:
            text = f"route {one.source.route.name!r} may carry its messages, too: {SEARCH_TOO_LONG}"
            return other.finding("unproven", "warning", text, NARROW_HINT)
        if copies is None:
            return None
        finding = copied_finding(one, other, *copies)
        return _conditional(finding, zip(one.endpoints, other.endpoints, strict=True), self._fleet)

    def _is_known(self, one: Flow, other: Flow) -> bool:
        """Return whether the gateway of both flows compares them alone."""
        pairs = zip(one.endpoints, other.endpoints, strict=True)
        ends = [(self._fleet[left], self._fleet[right]) for left, right in pairs]
        return all(left.gateway == right.gateway and left.own == right.own for left, right in ends)


def _divide(one: Flow, other: Flow) -> bool:
    """Return whether the sources are readers of one group, each with messages of its own."""
    groups = one.source.route.access.group, other.source.route.access.group
    return bool(groups[0]) and groups[0] == groups[1]
