"""The latest names of a route: kept only while somebody looks, and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.model.message import Message
from gateway.routing.router import Router
from gateway.runtime.record.recent_names import (
    MAX_NAMES,
    MAX_TEXT,
    MAX_VIEWS,
    WATCH_SECONDS,
    RecentNames,
)
from gateway.runtime.wiring import make_source_binding

CONFIG = """\
gateway: {name: test}
endpoints:
  here: {kind: mqtt, host: 127.0.0.1}
  there: {kind: mqtt, host: 127.0.0.2, limits: {bytes: 900}}
routes:
  all:
    from: {endpoint: here, pattern: "a/{rest...}"}
    to: {endpoint: there, template: "b/{rest...}"}
  other: {from: {endpoint: here, pattern: "c/#"}, to: {endpoint: there}}
"""


class Clock:
    """A clock that a test moves."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def router(tmp_path: Path) -> Router:
    config = tmp_path / "gateway.yaml"
    config.write_text(CONFIG)
    return make_source_binding(load(config), "here").rules.router


def passed(names: RecentNames, router: Router, *addresses: str) -> None:
    """Note one batch as a relay does: only while there is a view."""
    if names.views:
        messages = [Message(each, b"secret") for each in addresses]
        pairs = [(at, match) for at, each in enumerate(addresses) for match in router[each]]
        names.note("here", messages, [([at for at, _ in pairs], [match for _, match in pairs])])


def test_names_are_seen_from_the_first_question_on(router: Router) -> None:
    names = RecentNames()
    passed(names, router, "a/before")

    assert names.ask("all") == []
    passed(names, router, "a/1", "c/1", "a/2")

    seen = names.ask("all")
    assert [(each.endpoint, each.name) for each in seen] == [("here", "a/2"), ("here", "a/1")]
    assert [copy.name for each in seen for copy in each.copies] == ["b/2", "b/1"]


def test_a_refused_name_has_its_rule(router: Router) -> None:
    names = RecentNames()
    names.ask("all")
    passed(names, router, "a/" + "x" * 1_000)

    ((copy,),) = (each.copies for each in names.ask("all"))

    assert (copy.target, copy.name, copy.rule) == ("there", "", "too-long")
    assert "900" in copy.reason


def test_a_view_ends_when_nobody_asks(router: Router) -> None:
    clock = Clock()
    names = RecentNames(clock)
    names.ask("all")
    clock.seconds = WATCH_SECONDS
    passed(names, router, "a/1")
    assert len(names.ask("all")) == 1

    clock.seconds = 3 * WATCH_SECONDS
    passed(names, router, "a/2")

    assert names.views == {}
    assert names.ask("all") == []


def test_a_view_is_bounded(router: Router) -> None:
    names = RecentNames()
    names.ask("all")
    passed(names, router, *(f"a/{number}" + "/y" * 400 for number in range(3 * MAX_NAMES)))

    seen = names.ask("all")

    assert len(seen) == MAX_NAMES
    assert seen[0].name.startswith(f"a/{3 * MAX_NAMES - 1}/")
    assert {len(each.name) for each in seen} == {MAX_TEXT + 1}
    for number in range(2 * MAX_VIEWS):
        names.ask(f"route {number}")
    assert len(names.views) == MAX_VIEWS
