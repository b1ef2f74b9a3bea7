"""The subscriptions of a source: as few as receive all messages of its routes."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.errors import SearchBudgetExceeded
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.model.subject_search import covers
from gateway.routing.pattern_trie import PatternTrie
from gateway.routing.route import Route


def subscriptions(routes: Sequence[Route], selector: str = "") -> list[Subscription]:
    """The fewest subscriptions that receive all messages of `routes`.

    A subscription that another one covers is omitted, because some brokers deliver a message once
    for each matching subscription. An undecided cover counts as none. A shared subscription
    receives only a part of the messages, so it covers only subscriptions of the same share.
    """
    trie: PatternTrie[int] = PatternTrie()
    for number, route in enumerate(routes):
        for pattern in route.source.patterns:
            trie.add(pattern, number)
    kept: dict[int, Route] = {}
    for number, route in enumerate(routes):
        patterns, share = route.source.patterns, route.source.share
        found = trie.find(_example(patterns[0]))
        others = [each for each in found if each != number and routes[each].source.share == share]
        if any(each in kept and _covers(kept[each].source.patterns, patterns) for each in others):
            continue
        later = [routes[each].source.patterns for each in others if each > number]
        if any(_covers(each, patterns) and not _covers(patterns, each) for each in later):
            continue  # that one takes all names of this route, and more
        kept[number] = route
    takes = {route.take_retained for route in routes}
    return [
        Subscription(route.source.subscription, takes == {False}, selector, len(takes) > 1)
        for route in kept.values()
    ]


def _covers(wide: Sequence[Pattern], narrow: Sequence[Pattern]) -> bool:
    """Return whether it is certain that `wide` matches every subject that `narrow` matches."""
    try:
        return covers(wide, narrow)
    except SearchBudgetExceeded:
        # An omitted subscription can lose messages. A superfluous one can only bring second copies
        # (MQTT 5.0, 3.3.4); admission recognises a copy that has an id, or all with `echo_window`.
        return False


def _example(pattern: Pattern) -> tuple[str, ...]:
    """A name that the pattern selects; each pattern that covers it selects this name too."""
    levels: list[str] = []
    for level in pattern.levels:
        match level:
            case Literal(text):
                levels.append(text)
            case Glob(parts):
                levels.append("x".join(parts))
            case AnyOne() | AnyMany():
                levels.append("x")
    return tuple(levels)
