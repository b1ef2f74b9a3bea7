"""A night with messages that routes left out: verdict, report, tables, and the next night."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gateway.archive.journal.records import Cell, Rows
from gateway.cli import main
from gateway.model.cut_class import CutClass
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.nights.run import run_night
from gateway.night.reconcile.report.headline import headline
from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.summary import from_json
from tests.archive.samples import DAY, NOON, START, archive, delivered, digest, identity, received

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

DAYS = 86_400_000_000
MESSAGE: dict[str, Cell] = {"name": "a/b1", "hash": digest("1"), "received": NOON}


def silent(_text: str, _share: float | None = None) -> None:
    return None


def cut(number: int, targets: Sequence[str] = ("erp",), rule: str = "loop") -> list[Rows]:
    own: dict[str, Cell] = {
        **MESSAGE, "leg": "cut", "outcome": "cut", "rule": rule, "endpoint": "plant",
        "system": "mqtt",
    }  # fmt: skip
    return [delivered([number], each, NOON, **own) for each in targets]


def cuts_of(report: Report) -> Counter[tuple[object, object]]:
    return Counter({(row["target"], row["class"]): row["copies"] for row in report.cuts})


def test_a_cut_on_another_s_word_is_told_as_a_gap(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Message 1 is repeated by 2; nothing is repeated by 3, which a stranger hid from `audit`."""
    root, summary = tmp_path / "archive", tmp_path / "summary.json"
    other: dict[str, Cell] = {**MESSAGE, "hash": digest("3")}
    archive(
        root,
        received([1], received=NOON),
        delivered([1], received=NOON),
        *cut(2),
        received([3], ["erp"], NOON, **other),
        delivered([3], received=NOON, hash=digest("3")),
        delivered([3], "audit", NOON, **{**other, "leg": "cut", "outcome": "cut", "rule": "loop",
                                   "endpoint": "plant", "system": "mqtt"}),
        *cut(4, rule="ignored"),
    )  # fmt: skip
    arguments = ["reconcile", str(root), "--date", str(DAY), "--json", str(summary)]

    assert main(arguments) == 3
    out = capsys.readouterr().out
    assert main([*arguments, "--accept-cuts", "--sets"]) == 0

    text = "1 message cut on another's word"
    assert f"\nClean for what was received, with {text}: all 2 deliveries arrived\n" in out
    assert f"\nverdict: clean for what was received, {text}\n" in out
    assert f"cut on another's word: {identity(3).hex()} orders -> audit 'a/b1'" in out
    assert out.endswith(
        "left out 1\ncut 1\ncut retained 0\ncut in flight 0\ncut on another's word 1\n"
        "source gaps 0\nabsences 1\nmissing 0\n"
    )
    content = json.loads(summary.read_text())
    assert content["headline"].startswith(f"Clean for what was received, with {text} (accepted):")
    assert [row["class"] for row in content["cuts"]] == ["cut on another's word", "cut", "left out"]
    written = page(from_json(summary.read_text()))
    assert identity(3).hex() in written
    assert "these messages were cut, and neither" in written
    results = f"{root}/_reconciled/date={DAY}"
    (row,) = spark.read.parquet(f"{results}/cut_exceptions").collect()
    assert (row["id"], row["name"], row["target"]) == (identity(3).hex(), "a/b1", "audit")


@pytest.mark.parametrize("full", [True, False])
def test_a_cut_beside_a_loss_leaves_the_loss(tmp_path: Path, *, full: bool) -> None:
    """The row of the receipt lists the targets that are not cut; one of these has no outcome."""
    root = tmp_path / "archive"
    archive(
        root,
        received([1], ["erp", "lab"], received=NOON),
        delivered([1], received=NOON),
        *cut(1, ["audit"]),
        *cut(2),
    )

    report = reconcile(open_archive(root), DAY, Job(tmp_path / "out", full=full, now=NOON), silent)

    assert report.verdict == "not clean: 1 missing"
    assert (report.total("received"), report.total("delivered")) == (2, 1)
    assert cuts_of(report) == Counter(
        {("audit", CutClass.ON_WORD.value): 1, ("erp", CutClass.PROVEN.value): 1}
    )
    assert headline(report).endswith("; 1 missing; 1 message cut on another's word")


def test_a_later_row_proves_a_cut_of_a_judged_date(tmp_path: Path) -> None:
    """The row that it repeats comes into the archive two days later."""
    root = tmp_path / "archive"
    archive(root, *cut(2), clock=lambda: NOON + DAYS)
    first = run_night(open_archive(root), Job(now=NOON + DAYS), silent).report
    again = run_night(open_archive(root), Job(now=NOON + 2 * DAYS), silent).report
    archive(
        root, received([1], received=NOON), delivered([1], received=NOON), start=START + 1,
        clock=lambda: NOON + 2 * DAYS,
    )  # fmt: skip

    second = run_night(open_archive(root), Job(now=NOON + 3 * DAYS), silent).report

    assert (first.status, again.day) == (3, None)
    assert (second.day, cuts_of(second)) == (DAY, Counter({("erp", CutClass.PROVEN.value): 1}))


@pytest.mark.parametrize("full", [True, False])
def test_what_thin_left_out_is_decided_and_a_lost_latest_is_not(
    tmp_path: Path, *, full: bool
) -> None:
    """Message 1 was held and replaced, 2 never held; 3 stands for them, and 4 is gone."""
    root = tmp_path / "archive"
    held: dict[str, Cell] = {"leg": "spooled", "outcome": "spooled", "received": NOON}
    archive(
        root,
        received([1, 2, 3, 4], ["erp"], NOON),
        delivered([1, 3], "erp", NOON, **held),
        *cut(1, rule="thinned"),
        *cut(2, rule="thinned"),
        delivered([3], received=NOON),
    )

    report = reconcile(open_archive(root), DAY, Job(tmp_path / "out", full=full, now=NOON), silent)

    assert report.verdict == "not clean: 1 missing"
    assert (report.total("received"), report.total("delivered")) == (2, 1)
    assert cuts_of(report) == Counter({("erp", CutClass.LEFT_OUT.value): 2})
