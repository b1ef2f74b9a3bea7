"""Gap rows as gaps: the losses that a broker reports again and again are one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.archive.gaps import merge_gaps
from gateway.clock import moment

MINUTE = 60_000_000
DAY = 86_400_000_000
NOON = 20_000 * DAY + DAY // 2
EVERY_TEN = [(at * MINUTE // 6 - MINUTE, at * MINUTE // 6, 3) for at in range(6)]


def row(
    begin: int, end: int, lost: int | None, rule: str = "dropped", **more: object
) -> dict[str, object]:
    return {
        "gateway": "edge", "route": "orders", "endpoint": "plant", "name": "#", "rule": rule,
        "reason": "counted", "target": None, "begin": moment(NOON + begin),
        "time": moment(NOON + end), "lost": lost, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("losses", "gaps"),
    [
        pytest.param(EVERY_TEN, [(-MINUTE, 5 * MINUTE // 6, 18)], id="each-overlaps-the-next"),
        pytest.param([(0, 5, 3), (6, 9, 4)], [(0, 5, 3), (6, 9, 4)], id="apart"),
        pytest.param([(0, 5, 3), (6, 9, 4), (8, 10, 1)], [(0, 5, 3), (6, 10, 5)], id="one-apart"),
        pytest.param([(0, 5, 3), (5, 9, None)], [(0, 9, None)], id="one-without-a-number"),
        pytest.param([(0, 5, 3), (4, DAY, 4)], [(0, 5, 3), (4, DAY, 4)], id="on-the-next-date"),
    ],
)
def test_losses_that_overlap_are_one_gap_of_a_date(
    losses: Sequence[tuple[int, int, int | None]], gaps: Sequence[tuple[int, int, int | None]]
) -> None:
    found = merge_gaps(row(*loss) for loss in losses)

    assert [(gap.begin - NOON, gap.end - NOON, gap.lost) for gap in found] == gaps


@pytest.mark.parametrize(
    "other",
    [
        {"route": "b"},
        {"endpoint": "b"},
        {"gateway": "b"},
        {"target": "b"},
        {"reason": "b"},
    ],
)
def test_losses_of_different_sources_and_reasons_stay_apart(other: dict[str, str]) -> None:
    assert len(merge_gaps([row(0, 5, 3), {**row(0, 5, 3), **other}])) == 2


def test_a_row_without_a_begin_is_a_moment() -> None:
    (found,) = merge_gaps([{**row(0, 5, 3), "begin": None}])

    assert (found.begin, found.end) == (NOON + 5, NOON + 5)
