"""The commands of the operator's next steps."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.night.reconcile.report.actions import actions
from gateway.night.reconcile.report.report import Report
from gateway.terminal.text import MAX_TEXT
from tests.night.reconcile.summaries import DAY, clean, counted, gap, hidden


def replayed_routes(missing: dict[str, int]) -> tuple[list[str], str]:
    """The routes of the replay command for missing copies by route, and the text beside it."""
    routes = [
        {"route": route, "target": target, **counted(100, missing=number)}
        for route, number in missing.items()
        for target in ("erp", "audit")
    ]
    report = Report(archive="/archive", day=DAY.date(), routes=routes)
    (action,) = actions(report)
    words = shlex.split(action.commands[1])
    assert words[:2] == ["gateway", "replay"]
    found = [value for option, value in pairwise(words) if option == "--route"]
    return found, action.text


def test_one_command_replays_all_routes() -> None:
    routes, text = replayed_routes({"orders": 1, "a b": 3, "calm": 0})

    assert routes == ["a b", "orders"]
    assert "repeat them" not in text


def test_a_command_has_ten_routes_at_most() -> None:
    routes, text = replayed_routes({f"route-{number}": number for number in range(13)})

    assert routes == [f"route-{number}" for number in range(12, 2, -1)]
    assert "repeat them for 2 more" in text


def test_copies_of_a_target_that_is_no_longer_configured_have_a_step_of_their_own() -> None:
    row = {"route": "orders", "target": "old", **counted(100, **{"in flight": 2})}
    report = Report(archive="/archive", day=DAY.date(), routes=[{**row, "unconfigured": True}])

    *_, action = actions(report)

    assert action.text.startswith(
        "In flight (2) for a target that is no longer configured: old of route orders. Write was:"
    )
    assert action.commands == [f"gateway reconcile /archive --date {DAY.date()}"]


def test_refused_names_are_explained_by_one_that_stands_whole() -> None:
    routes = [{"route": "orders", "target": "erp", **counted(100, refused=2)}]
    samples = [{"class": "refused", "name": name} for name in ("x" * 9_000, "a b/$7")]
    report = Report(archive="/archive", day=DAY.date(), routes=routes, samples=samples)

    assert [each.commands for each in actions(report)] == [
        ["gateway explain 'a b/$7' --config CONFIG"]
    ]
    (action,) = actions(replace(report, samples=[{**samples[1], "rule": "payload"}]))
    assert action.commands == ["gateway explain 'a b/$7' --payload PAYLOAD --config CONFIG"]
    (action,) = actions(replace(report, samples=samples[:1]))
    assert action.commands == ["gateway explain NAME --config CONFIG"]


def test_a_command_names_the_archive_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    routes = [{"route": "orders", "target": "erp", **counted(100, missing=1)}]

    (here,) = actions(Report(archive="archive", day=DAY.date(), routes=routes))
    (there,) = actions(Report(archive="s3://nights/a", day=DAY.date(), routes=routes))

    assert f"gateway reconcile {tmp_path / 'archive'} --date" in here.commands[-1]
    assert "gateway reconcile s3://nights/a --date" in there.commands[-1]


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        ([None, None], "the archive cannot tell how many."),
        ([7, None], "the brokers count 7 of them; for 1 gap the archive cannot tell how many."),
        ([7, 1_204], "the brokers count 1,211 of them."),
    ],
)
def test_gaps_have_the_counts_of_the_brokers(lost: list[int | None], text: str) -> None:
    gaps = [gap("dropped", at, 60, lost=number) for at, number in enumerate(lost)]
    report = replace(clean(), gaps=[*gaps, gap("away", 9, 60, lost=None)])

    (action,) = actions(report)

    begin = "2 source gaps: messages may be lost before they reached the gateway; "
    assert action.text == f"{begin}{text} When they are cleared up, accept them."


@pytest.mark.parametrize("accepted", [True, False])
def test_cuts_on_a_word_have_three_causes(*, accepted: bool) -> None:
    key, brokers, publisher = actions(replace(hidden(), hops=(), accept_cuts=accepted))

    assert key.text.startswith(
        "2 messages cut on another's word: no row of the archive proves them. Do their gateways"
        " share no archive and no path_key?"
    )
    assert brokers.text.startswith("Do two brokers have one broker_id?")
    assert brokers.commands == ["gateway check A.yaml B.yaml"]
    assert publisher.text.startswith("Else a publisher wrote the path.")
    accept = ["gateway reconcile /var/archive --date 2026-03-14 --accept-cuts"]
    shown = [f"gateway archive show /var/archive {11:032x}"]
    assert publisher.commands == (shown if accepted else shown + accept)


def test_one_cut_is_one() -> None:
    (cut, *_) = hidden().cuts
    found = replace(hidden(), cuts=[{**cut, "copies": 1}])

    assert next(actions(found)).text.startswith(
        "1 message cut on another's word: no row of the archive proves it."
    )


def test_messages_between_gateways_on_a_word_have_the_path_of_one() -> None:
    (action,) = actions(replace(hidden(), cuts=()))

    assert action.text.startswith("1 message between gateways on a publisher's word.")
    assert action.commands == [
        f"gateway archive show /var/archive {11:032x}",
        "gateway reconcile /var/archive --date 2026-03-14 --accept-cuts",
    ]


def test_a_step_is_not_cut_off() -> None:
    """The page shows this many characters of a text."""
    assert max(len(each.text) for each in actions(hidden())) <= MAX_TEXT
