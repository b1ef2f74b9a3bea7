"""The subscriptions of many routes: as few as bring the same names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.registry import DIALECTS
from gateway.model.language import covers
from gateway.routing.captures import parse_source
from gateway.routing.route import Route
from gateway.runtime.wiring import subscriptions
from tests.strategies import patterns

MQTT = DIALECTS["mqtt"]


def routes(texts: list[str]) -> list[Route]:
    return [
        Route(f"r{number}", "here", MQTT, parse_source(text, MQTT), ())
        for number, text in enumerate(texts)
    ]


@given(st.lists(patterns("mqtt"), min_size=1, max_size=12))
def test_subscriptions_bring_what_all_routes_want_and_none_is_for_nothing(
    texts: list[str],
) -> None:
    every = routes(texts)
    kept = [parse_source(each.pattern, MQTT).patterns for each in subscriptions(every)]

    for route in every:
        assert any(covers(each, route.source.patterns) for each in kept)
    for number, one in enumerate(kept):
        assert not any(covers(other, one) for at, other in enumerate(kept) if at != number)


def test_a_thousand_routes_keep_a_thousand_subscriptions_and_one_takes_all() -> None:
    apart = [f"plant/{number}/#" for number in range(1_000)]

    assert len(subscriptions(routes(apart))) == 1_000
    assert [each.pattern for each in subscriptions(routes([*apart, "plant/#"]))] == ["plant/#"]


SHARES = [
    pytest.param(["$share/g/a/#", "a/b"], ["$share/g/a/#", "a/b"], id="a part does not bring all"),
    pytest.param(["a/#", "$share/g/a/b"], ["a/#", "$share/g/a/b"], id="all of one's own"),
    pytest.param(["$share/g/a/#", "$share/h/a/b"], ["$share/g/a/#", "$share/h/a/b"], id="another"),
    pytest.param(["$share/g/a/b", "$share/g/a/#"], ["$share/g/a/#"], id="the same share"),
]


@pytest.mark.parametrize(("taken", "kept"), SHARES)
def test_a_shared_subscription_covers_those_of_its_share(taken: list[str], kept: list[str]) -> None:
    assert [each.pattern for each in subscriptions(routes(taken))] == kept
