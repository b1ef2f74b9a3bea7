"""Proofs over pairs of targets at one broker: no message arrives twice, no two names become one.

Pairs of flows with equal shapes have one result, which is searched once. Each flow has a number of
pairs of its own, and a shared number limits the pairs beyond.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import chain

from gateway.model.overlap_index import OverlapIndex
from gateway.proofs.finding import RouteFinding, Severity
from gateway.proofs.flows.flow import Flow, shape_numbers
from gateway.proofs.rules.overlap_search import Overlap, find_overlap, of_one_target
from gateway.proofs.search.samples import translated_trials
from gateway.proofs.search.translated_name import TranslatedName

NARROW_HINT = "narrow one of the patterns, or exclude from one what the other takes"


def more_hint(severities: Collection[Severity]) -> str:
    """Return what to do where findings of these severities are the first of many."""
    if set(severities) <= {"note"}:
        return "nothing to do when what the notes above say is wanted"
    return "mend the findings above, then check again"


def overlap_findings(one: Flow, other: Flow, overlap: Overlap) -> Iterator[RouteFinding]:
    """Yield the findings about two flows, as findings of `other`."""
    if overlap.copies is not None:
        yield copied_finding(one, other, *overlap.copies)
    if overlap.names is not None:
        yield _collision(one, other, *overlap.names)
    if overlap.unproven:
        text = f"names may collide with those of route {one.source.route.name!r}; no example found"
        hint = "give each of the two routes a prefix of its own"
        yield other.finding("unproven", "warning", text, hint)


def copied_finding(
    one: Flow, other: Flow, first: TranslatedName, second: TranslatedName
) -> RouteFinding:
    """Return the finding about a message that two flows carry to one broker."""
    source, target = other.endpoints
    name, made, by = second.source_name, second.target_name, _by(one, other)
    if first.target_levels == second.target_levels:
        text = f"a message to {name!r} reaches {target!r} twice as {made!r}: {by}"
        severity: Severity = "error"
        if one.source.route.selector != other.source.route.selector:
            severity = "warning"
            text += ", unless their selectors never hold together"
        return other.finding(
            "delivered-twice", severity, text, NARROW_HINT, (name, made), (source, target)
        )
    text = f"a message to {name!r} reaches {target!r} as {first.target_name!r} and {made!r}: {by}"
    hint = f"nothing to do when both copies are wanted; else {NARROW_HINT}"
    names = (name, first.target_name, made)
    return other.finding("copies", "note", text, hint, names, (source, target, target))


def _collision(
    one: Flow, other: Flow, first: TranslatedName, second: TranslatedName
) -> RouteFinding:
    target, made = other.target.endpoint, second.target_name
    ends = one.source.route.endpoint, other.source.route.endpoint
    names = f"{first.source_name!r} from {ends[0]!r} and {second.source_name!r} from {ends[1]!r}"
    text = f"{names} both become {made!r} at {target!r}: {_by(one, other)}"
    rule, severity, hint = _collision_rule(one, other, first, second)
    example = (first.source_name, second.source_name, made)
    return other.finding(rule, severity, text, hint, example, (*ends, target))


def _collision_rule(
    one: Flow, other: Flow, first: TranslatedName, second: TranslatedName
) -> tuple[str, Severity, str]:
    """Return the rule, the severity and the hint for two names that become one."""
    if of_one_target(one, other):
        lossy = other.target.lossy
        return "not-injective", "note" if lossy else "error", "use every capture in the template"
    if one.source.broker != other.source.broker and first.source_levels == second.source_levels:
        return "merged", "note", "nothing to do when the two streams are meant to become one"
    lossy = one.target.lossy and other.target.lossy
    hint = "add a level to one of the templates that tells the sources apart"
    return "collision", "note" if lossy else "warning", hint


def _by(one: Flow, other: Flow) -> str:
    if one.source is not other.source:
        return f"by route {one.source.route.name!r} and by route {other.source.route.name!r}"
    if one.target_index == other.target_index:
        return "by one target"
    return f"by targets {one.target.label!r} and {other.target.label!r}"


PAIRS_PER_FLOW = 4  # pairs that each flow may search
SHARED_PAIRS = 4_000  # pairs beyond these, for all flows together
MAX_FINDINGS_PER_RULE = 3  # of one route; `more` says that there are others


def prove_overlaps(flows: Sequence[Flow], *, only_errors: bool = False) -> Iterator[RouteFinding]:
    """Yield messages that arrive twice, and names of different routes or targets that collide.

    `only_errors` omits names of different targets: that they collide is not an error.
    """
    pairs = _Pairs(flows)
    by_brokers: defaultdict[tuple[str, str], OverlapIndex[Flow]] = defaultdict(OverlapIndex)
    by_target: defaultdict[object, OverlapIndex[Flow]] = defaultdict(OverlapIndex)
    for flow in flows:
        same_source = by_brokers[flow.source.broker, flow.broker]
        same_target = by_target[(flow.source, flow.target_index) if only_errors else flow.broker]
        candidates = chain(
            same_source.candidates(flow.pattern), same_target.candidates(flow.target_pattern)
        )
        yield from pairs.findings(flow, candidates)
        same_source.add(flow.pattern, flow)
        same_target.add(flow.target_pattern, flow)
    yield from pairs.incomplete()


class _Pairs:
    """The pairs of flows with their results, by shape.

    Mutable: owned by `prove_overlaps`.
    """

    def __init__(self, flows: Sequence[Flow]) -> None:
        self._shapes = shape_numbers(flows)
        self._known: dict[object, Overlap | None] = {}  # None: the search became too long
        self._trials = cache(translated_trials)
        self._shared_pairs = SHARED_PAIRS
        self._found: Counter[tuple[int, str]] = Counter()  # findings by route and rule
        self._severities: defaultdict[int, set[Severity]] = defaultdict(set)  # by route
        self._reported: set[tuple[str, tuple[int, int], tuple[int, int]]] = set()
        self._more: dict[int, Flow] = {}  # routes with findings that are not reported
        self._open: dict[int, Flow] = {}  # routes with pairs that are not searched

    def findings(self, flow: Flow, candidates: Iterator[Flow]) -> Iterator[RouteFinding]:
        """Yield the findings about `flow` and each of `candidates`, which may repeat."""
        number, searched = flow.source.number, 0
        seen: set[Flow] = set()
        for other in candidates:
            if other in seen:
                continue
            seen.add(other)
            if self._found[number, "delivered-twice"] >= MAX_FINDINGS_PER_RULE:
                self._more[number] = flow
                return
            key = self._key(other, flow)
            if key not in self._known:
                searched += 1
                self._shared_pairs -= searched > PAIRS_PER_FLOW
                if self._shared_pairs < 0 and searched > PAIRS_PER_FLOW:
                    self._open[number] = flow
                    return
                self._known[key] = find_overlap(other, flow, self._trials)
            overlap = self._known[key]
            if overlap is None:
                self._open[number] = flow
                return
            yield from self._new_findings(other, flow, overlap)

    def incomplete(self) -> Iterator[RouteFinding]:
        """Yield a finding for each route whose pairs are not all searched and reported."""
        for number, flow in (self._more | self._open).items():
            if number not in self._open or self._found[number, "delivered-twice"]:
                what = "names of still more routes collide with those of this one"
                hint = more_hint(self._severities[number])
                yield flow.finding("more", "note", f"{what}; only the first are reported", hint)
            else:
                what = "names may collide with those of further routes"
                hint = "give the route a prefix of its own, or use fewer rest wildcards"
                text = f"{what}: there are more pairs than were searched"
                yield flow.finding("unproven", "warning", text, hint)

    def _key(self, one: Flow, other: Flow) -> object:
        same_source = one.source.broker == other.source.broker
        return self._shapes[one], self._shapes[other], same_source, of_one_target(one, other)

    def _new_findings(self, one: Flow, other: Flow, overlap: Overlap) -> Iterator[RouteFinding]:
        """Yield the findings that no other patterns of the two targets have given yet."""
        number = other.source.number
        targets = (one.source.number, one.target_index), (number, other.target_index)
        for finding in overlap_findings(one, other, overlap):
            if (finding.rule, *targets) in self._reported:
                continue
            self._reported.add((finding.rule, *targets))
            self._found[number, finding.rule] += 1
            self._severities[number].add(finding.severity)
            if self._found[number, finding.rule] <= MAX_FINDINGS_PER_RULE:
                yield finding
            else:
                self._more[number] = other
