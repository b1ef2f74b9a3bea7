"""Proofs over pairs of targets at one broker: nothing arrives twice, no two names meet there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.errors import LimitError
from gateway.model.pattern import Pattern
from gateway.proofs.facts import Finding, Severity
from gateway.proofs.forms import Flow
from gateway.proofs.index import overlapping
from gateway.proofs.meeting import Meeting
from gateway.proofs.witness import Sent

EXAMINED = 8  # pairs that are looked at for a route; the others are counted
MOST = 3  # findings of one rule that a route gets; the others are counted
DIVIDE = "narrow one of the patterns, or exclude from one what the other takes"


def across(flows: Sequence[Flow]) -> Iterator[Finding]:
    """Messages that arrive twice, and names of different routes or targets that become one."""
    examined: Counter[Flow] = Counter()
    kept: Counter[tuple[int, str]] = Counter()
    seen: set[tuple[str, tuple[int, int], tuple[int, int]]] = set()
    left: dict[int, Flow] = {}
    for one, other in _pairs(flows):
        number = other.site.number
        examined[other] += 1
        if examined[other] > EXAMINED or kept[number, "delivered-twice"] >= MOST:
            left[number] = other
            continue
        for finding in _judged(one, other):
            places = (one.site.number, one.place), (number, other.place)
            if (finding.rule, *places) in seen:
                continue
            seen.add((finding.rule, *places))
            kept[number, finding.rule] += 1
            if kept[number, finding.rule] <= MOST:
                yield finding
            else:
                left[number] = other
    yield from map(_more, left.values())


def _pairs(flows: Sequence[Flow]) -> list[tuple[Flow, Flow]]:
    """Flows, in order, whose made names may meet, or that may carry one message to one broker."""
    meeting: dict[str, list[tuple[Pattern, int]]] = {}
    carrying: dict[tuple[str, str], list[tuple[Pattern, int]]] = {}
    for at, flow in enumerate(flows):
        meeting.setdefault(flow.broker, []).append((flow.image, at))
        carrying.setdefault((flow.site.broker, flow.broker), []).append((flow.pattern, at))
    found = {
        (one, other)
        for rows in (*meeting.values(), *carrying.values())
        for one, other in overlapping(rows, rows)
        if one < other
    }
    return [(flows[one], flows[other]) for one, other in sorted(found)]


def _judged(one: Flow, other: Flow) -> Iterator[Finding]:
    try:
        pair = Meeting.of(one, other)
        alone = one.site is other.site and one.place == other.place
        copies = pair.copies() if pair.same_source and not alone else None
        if copies is not None:
            yield _copied(one, other, *copies)
            if copies[0].arrived == copies[1].arrived:
                return
        if not pair.may:
            return
        if (names := pair.collision()) is not None:
            yield _met(one, other, *names)
        elif pair.open and not alone:  # alone, each pattern has its own finding
            text = f"names may meet those of route {one.site.route.name!r}; no example was found"
            hint = "give each of the two routes a prefix of its own"
            yield other.site.finding("unproven", "warning", text, hint, target=other.place)
    except LimitError as error:
        text = f"whether names meet those of route {one.site.route.name!r} is open: {error}"
        hint = "use fewer rest wildcards in the pattern"
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
            "delivered-twice", severity, text, DIVIDE, example, target=other.place
        )
    text = (
        f"a message to {second.name!r} reaches {at!r} as {first.made!r} and {second.made!r}: {who}"
    )
    hint = f"nothing to do when both copies are wanted; else {DIVIDE}"
    names = (second.name, first.made, second.made)
    return other.site.finding("copies", "note", text, hint, names, target=other.place)


def _met(one: Flow, other: Flow, first: Sent, second: Sent) -> Finding:
    at = other.target.endpoint
    ends = one.site.route.endpoint, other.site.route.endpoint
    names = f"{first.name!r} from {ends[0]!r} and {second.name!r} from {ends[1]!r}"
    text = f"{names} both become {second.made!r} at {at!r}: {_who(one, other)}"
    example = (first.name, second.name, second.made)
    if one.site is other.site and one.place == other.place:
        hint = "use every capture in the template"
        known: Severity = "note" if other.target.lossy else "error"
        return other.site.finding("not-injective", known, text, hint, example, target=other.place)
    if one.site.broker != other.site.broker and first.levels == second.levels:
        hint = "nothing to do when the two streams are meant to become one"
        return other.site.finding("merged", "note", text, hint, example, target=other.place)
    meant = one.target.lossy and other.target.lossy
    hint = "put what tells the sources apart into one of the templates"
    return other.site.finding(
        "collision", "note" if meant else "warning", text, hint, example, target=other.place
    )


def _who(one: Flow, other: Flow) -> str:
    if one.site is not other.site:
        return f"by route {one.site.route.name!r} and by route {other.site.route.name!r}"
    if one.place == other.place:
        return "by one target"
    return f"by targets {one.target.label!r} and {other.target.label!r}"


def _more(flow: Flow) -> Finding:
    text = "names of still more routes meet those of this one; only the first were looked at"
    hint = "mend the findings above, then check again"
    return flow.site.finding("more", "note", text, hint, target=flow.place)
