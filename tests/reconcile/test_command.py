"""The whole line: a writer's journal, its segments, and `gateway reconcile` over them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.layout import segments
from gateway.cli.archive import reconcile
from gateway.reconcile.classify import output
from gateway.reconcile.report.html import page
from tests.archive.samples import (
    DAY,
    START,
    archive,
    dead,
    delivered,
    digest,
    identity,
    received,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def run(root: Path, *options: str, date: str = DAY.isoformat()) -> tuple[int, dict[str, Any]]:
    parser = argparse.ArgumentParser()
    reconcile.add_parsers(parser.add_subparsers())
    told = root.with_name("told.json")
    arguments = ["reconcile", str(root), "--date", date, "--json", str(told), *options]
    status = reconcile.run(parser.parse_args(arguments))
    return status, json.loads(told.read_text())


@pytest.mark.usefixtures("spark")
def test_a_clean_night(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "an [odd] {name}*"
    archive(root, received(range(50)), delivered(range(49)), dead(49))

    status, told = run(root)

    assert status == 0
    assert told["totals"] == {
        "received": 50, "delivered": 49, "delivered late": 0, "refused": 1, "dead-lettered": 0,
        "in flight": 0, "unexpected": 0, "out of order": 0, "altered": 0, "duplicated": 0,
        "lost in target": 0, "missing": 0, "marked": 0, "redelivered": 0,
    }  # fmt: skip
    assert [letter["rule"] for letter in told["dead_letters"]] == ["empty-element"]
    said = capsys.readouterr()
    out = said.out.splitlines()
    assert out[-1] == "missing 0"
    assert "verdict: clean" in out
    summary = root / "_reconciled" / f"date={DAY}" / "summary.json"
    assert json.loads(summary.read_text()) == told
    written = summary.with_name("report.html")
    assert said.err.splitlines()[-1] == f"report: {written}"
    assert written.read_text("utf-8") == page(told)
    hours = [(hour["hour"], hour["received"]) for hour in told["whole_day"]]
    assert hours == [(f"{DAY}T12:00:00+00:00", 50)]


@pytest.mark.usefixtures("spark")
def test_injected_faults_are_found_and_no_others(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(
        root,
        received(range(100), ("erp", "audit")),
        delivered(range(100), "audit"),
        delivered([number for number in range(100) if number not in {7, 8}]),  # 7 and 8 are lost
        delivered([20]),  # doubled, and nobody knew
        delivered([30], attempt=2),  # doubled, and marked
        delivered([40], "audit", attempt=2, hash=digest("forged")),
    )

    for _ in range(2):  # a second run replaces the tables of the first
        status, told = run(root)
        assert status == 1
        assert told["verdict"] == "not clean: 1 altered, 2 missing, 1 duplicated"
        named = sorted((each["class"], each["target"], each["name"]) for each in told["samples"])
        assert named == [
            ("altered", "audit", "a/b40"),
            ("duplicated", "erp", "a/b20"),
            ("duplicated", "erp", "a/b30"),
            ("missing", "erp", "a/b7"),
            ("missing", "erp", "a/b8"),
        ]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("listed", [100, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_a_loss_in_the_last_of_many_routes_is_in_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    monkeypatch.setattr(output, "_ROWS", min(listed, output._ROWS))  # noqa: SLF001  # its own bound
    root = tmp_path / "archive"
    routes: list[Cell] = [f"route-{number:05}" for number in range(listed + 2)]
    archive(
        root,
        Rows(len(routes), received([0]).common, one_each(routes)),
        Rows(len(routes) - 1, delivered([0]).common, one_each(routes[:-1])),
    )

    status, told = run(root)

    assert status == 1
    assert told["verdict"] == "not clean: 1 missing"
    assert told["totals"]["received"] == len(routes)
    assert len(told["routes"]) == listed
    assert (told["routes"][0]["route"], told["routes"][0]["missing"]) == (routes[-1], 1)


def one_each(routes: list[Cell]) -> dict[str, Sequence[Cell]]:
    """The columns of one message a route."""
    ids: list[Cell] = [identity(number) for number in range(len(routes))]
    rows = len(routes)
    return {"route": routes, "id": ids, "name": ["n"] * rows, "hash": [digest("same")] * rows}


@pytest.mark.usefixtures("spark")
def test_files_that_cannot_be_read_are_findings(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, received(range(500)), delivered(range(500)))
    archive(root, received([501]), delivered([501]), start=START + 1)
    one, other = segments(root, DAY)
    content = bytearray(one.read_bytes())
    content[len(content) // 3] ^= 0xFF  # only a page: the footer is whole, Spark stumbles
    one.write_bytes(content)
    one.with_name("foreign.parquet").write_text("no Parquet")

    status, told = run(root)

    assert status == 1
    assert sorted(finding["place"] for finding in told["findings"]) == sorted(
        str(path.relative_to(root)) for path in (one, one.with_name("foreign.parquet"))
    )
    assert told["totals"]["received"] == 1
    assert other.exists()


@pytest.mark.parametrize(
    ("date", "options", "text"),
    [
        pytest.param("2026-02-30", [], "date '2026-02-30': day", id="no-such-day"),
        pytest.param("yesterday", [], "write YYYY-MM-DD", id="no-date"),
        pytest.param("2026-03-14", ["--margin-hours", "-1"], "0 or more", id="negative"),
    ],
)
def test_a_question_without_an_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], date: str, options: list[str], text: str
) -> None:
    root = tmp_path / "archive"
    root.mkdir()

    status, told = run(root, *options, date=date)

    assert status == 2
    assert text in capsys.readouterr().err
    assert text in told["findings"][0]["text"]


def test_a_date_without_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "archive"
    archive(root, received([1]))
    segments(root, DAY)[0].write_bytes(b"")

    status, told = run(root)

    assert status == 2
    assert [finding["rule"] for finding in told["findings"]] == ["empty-file", "no-data"]
    assert "verdict: no answer" in capsys.readouterr().out
    written = root / "_reconciled" / f"date={DAY}" / "report.html"
    assert "No answer: this date could not be reconciled" in written.read_text("utf-8")


def test_no_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _ = run(tmp_path / "nowhere")

    assert status == 2
    assert "is not a folder" in capsys.readouterr().err


def test_the_session_is_the_one_that_runs(spark: SparkSession) -> None:
    assert SparkSession.getActiveSession() is spark
