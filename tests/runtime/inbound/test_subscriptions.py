"""Subscriptions of many routes: the fewest that receive all their messages."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.dialects.registry import DIALECTS
from gateway.model import subject_search
from gateway.model.subject_search import covers
from gateway.routing.route import Route
from gateway.routing.source_pattern import SourcePattern, parse_source
from gateway.runtime.inbound.subscriptions import subscriptions
from tests.strategies import patterns

MQTT = DIALECTS["mqtt"]


def routes(texts: list[str]) -> list[Route]:
    return [
        Route(f"r{number}", "here", MQTT, parse_source(text, MQTT), ())
        for number, text in enumerate(texts)
    ]


@given(st.lists(patterns("mqtt"), min_size=1, max_size=12))
@example(["*", "$share/*/*"])
def test_subscriptions_cover_every_route_and_none_covers_another(
    texts: list[str],
) -> None:
    every = routes(texts)
    kept = [parse_source(each.pattern, MQTT) for each in subscriptions(every)]

    def covered_by(one: SourcePattern) -> list[SourcePattern]:
        """The kept subscriptions that cover a pattern: a share covers those of its own name."""
        return [
            each for each in kept if each.share == one.share and covers(each.patterns, one.patterns)
        ]

    assert all(covered_by(route.source) for route in every)
    assert all(covered_by(each) == [each] for each in kept)


def test_a_thousand_routes_need_a_thousand_subscriptions_or_one_that_covers_all() -> None:
    disjoint = [f"plant/{number}/#" for number in range(1_000)]

    assert len(subscriptions(routes(disjoint))) == 1_000
    assert [each.pattern for each in subscriptions(routes([*disjoint, "plant/#"]))] == ["plant/#"]


SHARES = [
    pytest.param(
        ["$share/g/a/#", "a/b"], ["$share/g/a/#", "a/b"], id="a share covers no unshared one"
    ),
    pytest.param(
        ["a/#", "$share/g/a/b"], ["a/#", "$share/g/a/b"], id="an unshared one covers no share"
    ),
    pytest.param(
        ["$share/g/a/#", "$share/h/a/b"], ["$share/g/a/#", "$share/h/a/b"], id="other share"
    ),
    pytest.param(["$share/g/a/b", "$share/g/a/#"], ["$share/g/a/#"], id="same share"),
]


@pytest.mark.parametrize(("patterns", "kept"), SHARES)
def test_a_shared_subscription_covers_only_its_share(patterns: list[str], kept: list[str]) -> None:
    assert [each.pattern for each in subscriptions(routes(patterns))] == kept


@pytest.mark.parametrize("order", [["a/#", "a/+/c"], ["a/+/c", "a/#"]], ids=["wide", "narrow"])
def test_a_cover_that_the_search_cannot_decide_keeps_both_subscriptions(
    monkeypatch: pytest.MonkeyPatch, order: list[str]
) -> None:
    """A message that arrives twice is better than one that never arrives."""
    assert [each.pattern for each in subscriptions(routes(order))] == ["a/#"]

    monkeypatch.setattr(subject_search, "MAX_STEPS", 1)

    assert [each.pattern for each in subscriptions(routes(order))] == order
