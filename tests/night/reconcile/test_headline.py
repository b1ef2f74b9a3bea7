"""The first line of a night says how many of how many arrived, whatever the verdict of it is."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest

from gateway.cli import main
from tests.archive.samples import DAY, NOON, archive, delivered, received
from tests.archived import segments

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
HOUR = 3_600_000_000


def night(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    """Reconcile the date; return the exit status, the last lines, and the page."""
    capsys.readouterr()
    command = ["reconcile", str(root), "--date", str(DAY), "--master", "local[1]"]
    command += ["--spooled-days", "36500"]
    status = main([*command, "--json", str(root / "summary.json")])
    lines = capsys.readouterr().out.splitlines()
    verdict = next(at for at, line in enumerate(lines) if line.startswith("verdict: "))
    page = root / "_reconciled" / f"date={DAY}" / "report.html"
    headline = json.loads((root / "summary.json").read_text())["headline"]
    assert headline == lines[verdict - 1]
    return status, lines[verdict - 1 :], unescape(page.read_text("utf-8"))


@pytest.mark.nightly
def test_a_day_of_dead_letters_and_of_copies_in_the_spool_is_not_one_without_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(
        tmp_path,
        received(range(55)),
        delivered(range(20)),
        delivered(range(20, 45), leg="dead", outcome="rejected", rule="spool-full", reason="full"),
        delivered(range(45, 55), leg="spooled", outcome="spooled"),
    )

    status, lines, page = night(tmp_path, capsys)

    assert (status, lines[1]) == (0, "verdict: clean")
    assert lines[0] == "20 of 55 deliveries arrived; 25 dead-lettered, 10 in flight"
    assert {"dead-lettered 25", "in flight 10", "delivered 20", "missing 0"} <= set(lines)
    assert f'<span aria-hidden="true">!</span> {lines[0]}</p>' in page
    assert "Clean" not in page
    assert "Not arrived by hour, all routes: 25 dead-lettered, 10 in flight" in page
    # Copies without a delivery have no latency: they are in no percentile.
    assert "Latency percentiles by hour, all routes: p50 ≤ 0 µs, p90 ≤ 0 µs, p99 ≤ 0 µs" in page


def test_with_an_absent_segment_nobody_knows_how_many_arrived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before, the figures said: delivered 100 %, proven 100 %, loss none."""
    for hour in range(2):
        at = NOON + hour * HOUR
        numbers = range(hour * 50, hour * 50 + 50)
        archive(tmp_path, received(numbers, time=at), delivered(numbers, time=at), start=at)
    absent = next(each for each in segments(tmp_path, DAY) if each.parent.name == "hour=13")
    absent.unlink()

    status, lines, page = night(tmp_path, capsys)

    assert status == 1
    assert lines[0] == (
        "Not clean: 100 rows of the date are absent or not proven, so how many of how many"
        " deliveries arrived is not known"
    )
    assert lines[1] == "verdict: not clean: 1 error in the archive"
    assert lines[0] in page
    assert "100 %" not in page
    assert "<dt>known deliveries</dt><dd>50</dd>" in page
    assert "<dt>rows absent or not proven</dt><dd>100</dd>" in page
    assert "Not arrived by hour, all routes: none known" in page
    assert json.loads((tmp_path / "summary.json").read_text())["proof"]["unproven"] == 100


def test_a_night_blames_a_removed_target_and_not_the_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(
        tmp_path,
        received(range(3)),
        delivered(range(3), leg="dead", outcome="rejected", rule="target-removed", reason="gone"),
    )

    status, lines, page = night(tmp_path, capsys)

    assert (status, lines[0]) == (0, "0 of 3 deliveries arrived; 3 dead-lettered")
    assert "configure the target again" in page
    assert "send them again" in page
    assert "Correct the mapping" not in page
