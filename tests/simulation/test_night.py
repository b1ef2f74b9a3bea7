"""The night of simulated runs: it says what the brokers' books say, of each gateway."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.job import Job, reconcile
from tests.simulation.nights import DAY, LATER, SimulatedNight, contradictions

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

TAPPED = (88, 12877, 20976, 41339, 53694)  # a tap was blind, or saw a copy more than once
REMOVED = (2000690,)  # a reload removed a target after the answers of its copies were lost
MANY = [range(first, first + 500) for first in range(2_000_000, 2_005_000, 500)]


def _name(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} from {seeds[0]}"


@pytest.mark.nightly
@pytest.mark.parametrize("seeds", [(*range(80, 90), *TAPPED, *REMOVED), *MANY], ids=_name)
@pytest.mark.parametrize("full", [False, True], ids=["sets", "full"])
def test_the_night_says_what_the_books_say(
    tmp_path: Path, seeds: Sequence[int], *, full: bool
) -> None:
    night = SimulatedNight(tmp_path)
    night.add(seeds)

    report = reconcile(open_archive(tmp_path), DAY, Job(full=full, now=LATER), lambda *_: None)

    assert not night.findings
    assert not [*contradictions(night, report)]
    assert report.total("received") > 10 * len(seeds)
