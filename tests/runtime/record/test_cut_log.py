"""The log lines about cut messages: one a minute for each route and rule, with all of them."""

from __future__ import annotations

import logging

import pytest

from gateway.runtime.record.cut_log import LOG_INTERVAL, CutLog

LINE = "route %r cut %d %s with the rule %r since the last such line, for example %r"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "gateway")
    return caplog


def test_a_line_a_minute_has_the_number_since_the_last_one(lines: pytest.LogCaptureFixture) -> None:
    cuts = CutLog("plant")
    for second in range(130):
        cuts.count([("all", "loop", f"a/{second}"), ("all", "duplicate", "a/d")] * 2)
        cuts.count([("other", "loop-limit", "b")] if second == 70 else [])
        cuts.say(1_000.0 + second)
    cuts.say(5_000.0)
    cuts.say(9_000.0)

    assert [record.msg for record in lines.records] == [LINE] * len(lines.records)
    found = [record.args for record in lines.records]
    loops = [each for each in found if each and "loop" in each]
    assert loops == [
        ("all", 2, "messages", "loop", "a/0"),
        ("all", 120, "messages", "loop", "a/1"),
        ("all", 120, "messages", "loop", "a/61"),
        ("all", 18, "messages", "loop", "a/121"),
    ]
    assert [each[1] for each in found if each and "duplicate" in each] == [2, 120, 120, 18]  # type: ignore[index]  # a tuple
    assert ("other", 1, "message", "loop-limit", "b") in found
    assert {record.__dict__["endpoint"] for record in lines.records} == {"plant"}


def test_an_end_says_what_no_line_has_said(lines: pytest.LogCaptureFixture) -> None:
    cuts = CutLog("plant")
    for at in (0.0, 1.0):
        cuts.count([("all", "loop", "a")])
        cuts.say(1_000 + at, at_end=bool(at))
    cuts.say(1_000 + 2 * LOG_INTERVAL, at_end=True)

    assert [record.args for record in lines.records] == [("all", 1, "message", "loop", "a")] * 2


@pytest.mark.parametrize(
    ("route", "rule", "level"),
    [
        ("all", "loop", logging.WARNING),
        ("all", "loop-limit", logging.WARNING),
        ("all", "duplicate", logging.INFO),
        ("both", "loop", logging.INFO),
        ("both", "loop-limit", logging.WARNING),
    ],
)
def test_what_is_usual_is_no_warning(
    lines: pytest.LogCaptureFixture, route: str, rule: str, level: int
) -> None:
    cuts = CutLog("plant")
    cuts.two_way = {"both"}
    cuts.count([(route, rule, "a")])
    cuts.say(1_000.0)

    assert [record.levelno for record in lines.records] == [level]


@pytest.mark.parametrize("rule", ["ignored", "unselected"])
def test_what_the_mapping_leaves_out_is_not_said(
    lines: pytest.LogCaptureFixture, rule: str
) -> None:
    cuts = CutLog("plant")
    cuts.count([("all", rule, "a")])
    cuts.say(1_000.0)

    assert not lines.records
