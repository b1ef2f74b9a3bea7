"""Proofs over pairs of targets at one broker: nothing arrives twice, no two names meet there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from gateway.errors import LimitError
from gateway.model.pattern_index import Index
from gateway.proofs.budget import ask
from gateway.proofs.finding import Finding, Severity
from gateway.proofs.flows.flow import Flow, numbered
from gateway.proofs.rules.overlap_pair import Meeting
from gateway.proofs.search.samples import Trials
from gateway.proofs.search.witness import Sent

EXAMINED = 4  # pairs that are looked at for each flow in any case
SPARE = 4_000  # pairs that are looked at beyond, in all
MOST = 3  # findings of one rule that a route gets; the others are counted
DIVIDE = "narrow one of the patterns, or exclude from one what the other takes"


def across(flows: Sequence[Flow]) -> Iterator[Finding]:
    """Messages that arrive twice, and names of different routes or targets that become one."""
    pairs = _Pairs(flows)
    carrying: defaultdict[tuple[str, str], Index[Flow]] = defaultdict(Index)
    meeting: defaultdict[str, Index[Flow]] = defaultdict(Index)
    for flow in flows:
        same, near = carrying[flow.site.broker, flow.broker], meeting[flow.broker]
        yield from pairs.about(flow, chain(same.near(flow.pattern), near.near(flow.image)))
        same.add(flow.pattern, flow)
        near.add(flow.image, flow)
    yield from pairs.cut_short()


@dataclass(frozen=True, slots=True)
class _Met:
    """What two flows do: a message that both carry, two names that they make one.

    `unsure` when there may be such names though none was found.
    """

    copies: tuple[Sent, Sent] | None = None
    names: tuple[Sent, Sent] | None = None
    unsure: bool = False


_TOO_LONG = _Met()


class _Pairs:
    """Judges pairs of flows. Mutable: it knows what pairs of the same shapes do, and counts."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self._shapes = numbered(flows)
        self._known: dict[object, _Met] = {}
        self._trials = Trials()
        self._spare = SPARE
        self._found: Counter[tuple[int, str]] = Counter()  # by route and rule
        self._told: set[tuple[str, tuple[int, int], tuple[int, int]]] = set()
        self._more: dict[int, Flow] = {}  # routes with findings that were not told
        self._open: dict[int, Flow] = {}  # routes with pairs that were not looked at

    def about(self, flow: Flow, others: Iterator[Flow]) -> Iterator[Finding]:
        """Findings about `flow` and those of `others`, which may come twice."""
        number, fresh = flow.site.number, 0
        seen: set[Flow] = set()
        for one in others:
            if one in seen:
                continue
            seen.add(one)
            if self._found[number, "delivered-twice"] >= MOST:
                self._more[number] = flow
                return
            key = self._key(one, flow)
            if key not in self._known:
                fresh += 1
                self._spare -= fresh > EXAMINED
                if self._spare < 0 and fresh > EXAMINED:
                    self._open[number] = flow
                    return
                self._known[key] = _judged(one, flow, self._trials)
            if self._known[key] is _TOO_LONG:
                self._open[number] = flow
                return
            yield from self._fresh(one, flow, self._known[key])

    def cut_short(self) -> Iterator[Finding]:
        """A finding for each route whose findings are not all there."""
        for number, flow in (self._more | self._open).items():
            twice = self._found[number, "delivered-twice"]
            yield _more(flow) if number not in self._open or twice else _open(flow)

    def _key(self, one: Flow, other: Flow) -> object:
        same = one.site.broker == other.site.broker
        return self._shapes[one], self._shapes[other], same, _alone(one, other)

    def _fresh(self, one: Flow, other: Flow, met: _Met) -> Iterator[Finding]:
        """The findings of a pair, those that were not told of another pattern of the two."""
        number = other.site.number
        for finding in _findings(one, other, met):
            places = (one.site.number, one.place), (number, other.place)
            if (finding.rule, *places) in self._told:
                continue
            self._told.add((finding.rule, *places))
            self._found[number, finding.rule] += 1
            if self._found[number, finding.rule] <= MOST:
                yield finding
            else:
                self._more[number] = other


def _alone(one: Flow, other: Flow) -> bool:
    """Whether they are two patterns of one target."""
    return one.site is other.site and one.place == other.place


def _judged(one: Flow, other: Flow, trials: Trials) -> _Met:
    ask()
    try:
        pair = Meeting(one, other, trials)
        alone = _alone(one, other)
        copies = pair.copies() if pair.same_source and not alone else None
        if (copies is not None and copies[0].arrived == copies[1].arrived) or not pair.may:
            return _Met(copies)
        names = pair.collision()
        if names is None and pair.open and not alone:  # alone, each pattern has its own finding
            return _Met(copies, unsure=True)
        return _Met(copies, names)
    except LimitError:
        return _TOO_LONG


def _findings(one: Flow, other: Flow, met: _Met) -> Iterator[Finding]:
    if met.copies is not None:
        yield _copied(one, other, *met.copies)
    if met.names is not None:
        yield _met(one, other, *met.names)
    if met.unsure:
        text = f"names may meet those of route {one.site.route.name!r}; no example was found"
        hint = "give each of the two routes a prefix of its own"
        yield other.site.finding("unproven", "warning", text, hint, target=other.place)


def _copied(one: Flow, other: Flow, first: Sent, second: Sent) -> Finding:
    at = other.target.endpoint
    who = _who(one, other)
    if first.arrived == second.arrived:
        text = f"a message to {second.name!r} reaches {at!r} twice as {second.made!r}: {who}"
        severity: Severity = "error"
        if one.site.route.selector != other.site.route.selector:
            severity = "warning"
            text += ", unless their selectors never hold together"
        example = (second.name, second.made)
        return other.site.finding(
            "delivered-twice", severity, text, DIVIDE, example, other.ends, target=other.place
        )
    text = (
        f"a message to {second.name!r} reaches {at!r} as {first.made!r} and {second.made!r}: {who}"
    )
    hint = f"nothing to do when both copies are wanted; else {DIVIDE}"
    names = (second.name, first.made, second.made)
    ends = (*other.ends, at)
    return other.site.finding("copies", "note", text, hint, names, ends, target=other.place)


def _met(one: Flow, other: Flow, first: Sent, second: Sent) -> Finding:
    at = other.target.endpoint
    ends = one.site.route.endpoint, other.site.route.endpoint
    names = f"{first.name!r} from {ends[0]!r} and {second.name!r} from {ends[1]!r}"
    text = f"{names} both become {second.made!r} at {at!r}: {_who(one, other)}"
    example, places = (first.name, second.name, second.made), (*ends, at)
    if one.site is other.site and one.place == other.place:
        hint = "use every capture in the template"
        known: Severity = "note" if other.target.lossy else "error"
        rule = "not-injective"
        return other.site.finding(rule, known, text, hint, example, places, target=other.place)
    if one.site.broker != other.site.broker and first.levels == second.levels:
        hint = "nothing to do when the two streams are meant to become one"
        return other.site.finding("merged", "note", text, hint, example, places, target=other.place)
    meant = one.target.lossy and other.target.lossy
    hint = "put what tells the sources apart into one of the templates"
    severity: Severity = "note" if meant else "warning"
    return other.site.finding(
        "collision", severity, text, hint, example, places, target=other.place
    )


def _who(one: Flow, other: Flow) -> str:
    if one.site is not other.site:
        return f"by route {one.site.route.name!r} and by route {other.site.route.name!r}"
    if one.place == other.place:
        return "by one target"
    return f"by targets {one.target.label!r} and {other.target.label!r}"


def _more(flow: Flow) -> Finding:
    text = "names of still more routes meet those of this one; only the first are told"
    hint = "mend the findings above, then check again"
    return flow.site.finding("more", "note", text, hint, target=flow.place)


def _open(flow: Flow) -> Finding:
    text = "names may meet those of more routes than could be looked at; of the others this is open"
    hint = "give the route a prefix of its own, or use fewer wildcards for many levels"
    return flow.site.finding("unproven", "warning", text, hint, target=flow.place)
