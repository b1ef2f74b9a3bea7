"""The findings about an overlap of two flows, with their texts."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.proofs.finding import RouteFinding, Severity
from gateway.proofs.flows.flow import Flow
from gateway.proofs.rules.overlap_search import Overlap, of_one_target
from gateway.proofs.search.translated_name import TranslatedName

NARROW_HINT = "narrow one of the patterns, or exclude from one what the other takes"


def overlap_findings(one: Flow, other: Flow, overlap: Overlap) -> Iterator[RouteFinding]:
    """Yield the findings about two flows, as findings of `other`."""
    if overlap.copies is not None:
        yield _copied(one, other, *overlap.copies)
    if overlap.names is not None:
        yield _collision(one, other, *overlap.names)
    if overlap.unproven:
        text = f"names may collide with those of route {one.source.route.name!r}; no example found"
        hint = "give each of the two routes a prefix of its own"
        yield other.finding("unproven", "warning", text, hint)


def more_pairs(flow: Flow) -> RouteFinding:
    """Return the note that a route has more findings than are reported."""
    text = "names of still more routes collide with those of this one; only the first are reported"
    hint = "mend the findings above, then check again"
    return flow.finding("more", "note", text, hint)


def unproven_pairs(flow: Flow) -> RouteFinding:
    """Return the warning that a route has pairs that are not searched."""
    text = "names may collide with those of further routes: there are more pairs than were searched"
    hint = "give the route a prefix of its own, or use fewer rest wildcards"
    return flow.finding("unproven", "warning", text, hint)


def _copied(one: Flow, other: Flow, first: TranslatedName, second: TranslatedName) -> RouteFinding:
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
