"""From the journal of a writer through its segments to the answer of `gateway reconcile`."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest
from pyspark.sql import SparkSession

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.layout import journal_folder
from gateway.cli import main, make_parser
from gateway.night.cli import reconcile
from gateway.night.reconcile import job
from gateway.night.reconcile.classify import result_tables
from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.summary import from_json, to_json
from tests.archive.samples import (
    DAY,
    archive,
    dead,
    delivered,
    digest,
    identity,
    received,
)
from tests.archived import segments

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


LISTED = 8  # routes that the summary lists
ROUTES = [f"route-{number:02}" for number in range(LISTED + 2)]


@dataclass(frozen=True)
class Night:
    """The exit status, the summary and the output of one run of the command."""

    status: int
    summary: dict[str, Any]
    out: str
    err: str


def run(root: Path, *options: str, date: str = DAY.isoformat()) -> Night:
    summary = root.with_name("summary.json")
    arguments = ["reconcile", str(root), "--date", date, "--json", str(summary), *options]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = reconcile.run(make_parser("reconcile").parse_args(arguments))
    return Night(status, json.loads(summary.read_text()), out.getvalue(), err.getvalue())


def closed_pipe() -> TextIO:
    """A stream whose reader has ended, as `head` does."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8")


@pytest.mark.nightly  # two nights; tests/terminal/test_closed_pipe.py has the other commands
def test_a_reader_that_ends_does_not_change_the_exit_status(
    faulty: Night, root: Path, tmp_path: Path
) -> None:
    output = ["--output", str(tmp_path / "out")]
    with closed_pipe() as out, closed_pipe() as err, redirect_stdout(out), redirect_stderr(err):
        status = main(["reconcile", str(root), "--date", DAY.isoformat(), *output])
        followed = main(["reconcile", str(root), "--follow", "--once", *output])

    assert (faulty.status, status, followed) == (1, 1, 1)


def many_routes(rows: Rows, routes: Sequence[str]) -> Rows:
    """One row for each of `routes`."""
    columns: dict[str, Sequence[Cell]] = {
        "route": list(routes),
        "id": [identity(1_000 + number) for number in range(len(routes))],
        "name": ["n"] * len(routes),
        "hash": [digest("same")] * len(routes),
    }
    return Rows(len(routes), rows.common, columns)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("command") / "an [odd] {name}*"


@pytest.fixture(scope="module")
def clean(spark: SparkSession, root: Path) -> Night:  # noqa: ARG001  # the session is running
    archive(root, received(range(50)), delivered(range(49)), dead(49))
    return run(root)


@pytest.fixture(scope="module")
def faulty(clean: Night, root: Path) -> Iterator[Night]:  # noqa: ARG001  # its tables are replaced
    """A run over a date with several gateways, each with another kind of fault."""
    more = range(100, 200)
    archive(
        root,
        received(more, ("erp", "audit")),
        delivered(more, "audit"),
        delivered([number for number in more if number not in {107, 108}]),  # both are lost
        delivered([120]),  # doubled, without a mark
        delivered([130], attempt=2),  # doubled, and marked
        delivered([140], "audit", attempt=2, hash=digest("forged")),
        gateway="faulty",
    )
    archive(
        root,
        many_routes(received([0]), ROUTES),
        many_routes(delivered([0]), ROUTES[:-1]),
        gateway="busy",
    )
    archive(root, received(range(500, 999)), delivered(range(500, 999)), gateway="damaged")
    damaged = segment(root, "damaged")
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 0xFF  # one page: the footer stays whole, Spark fails
    damaged.write_bytes(content)
    damaged.with_name("foreign.parquet").write_text("no Parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_tables, "MAX_ROWS", LISTED)
        yield run(root)


def segment(root: Path, gateway: str) -> Path:
    (found,) = (path for path in segments(root, DAY) if path.name.startswith(gateway))
    return found


def test_a_clean_night_is_exit_status_0(clean: Night) -> None:
    assert clean.status == 0
    assert clean.summary["verdict"] == "clean"
    assert clean.summary["totals"] == {
        "received": 50, "delivered": 49, "delivered late": 0, "refused": 1, "dead-lettered": 0,
        "in flight": 0, "unexpected": 0, "out of order": 0, "altered": 0, "duplicated": 0,
        "lost in target": 0, "recovered": 0, "missing": 0, "marked": 0, "redelivered": 0,
        "resent": 0,
    }  # fmt: skip
    assert [letter["rule"] for letter in clean.summary["dead_letters"]] == ["empty-element"]
    hours = [(hour["hour"], hour["received"]) for hour in clean.summary["whole_day"]]
    assert hours == [(f"{DAY}T12:00:00+00:00", 50)]


def test_a_night_ends_in_numbers_and_the_place_of_its_report(clean: Night, root: Path) -> None:
    written = root / "_reconciled" / f"date={DAY}" / "report.html"
    lines = clean.out.splitlines()

    assert lines[-1] == "missing 0"
    assert "verdict: clean" in lines
    assert clean.err.splitlines()[-1] == f"report: {written}"


def test_a_second_run_replaces_the_results_of_the_first(faulty: Night, root: Path) -> None:
    folder = root / "_reconciled" / f"date={DAY}"

    content = (folder / "summary.json").read_bytes()
    report = from_json(content)

    assert json.loads(content).items() <= faulty.summary.items()
    assert faulty.summary.keys() - json.loads(content).keys() == {"dates", "night_findings"}
    assert to_json(report).encode() == content
    assert (folder / "report.html").read_text("utf-8") == page(report)


def test_every_fault_is_found_and_no_other(faulty: Night) -> None:
    named = [(each["class"], each["target"], each["name"]) for each in faulty.summary["samples"]]

    assert faulty.status == 1
    assert faulty.summary["verdict"] == (
        "not clean: 3 missing, 1 altered, 1 duplicated, 2 errors in the archive"
    )
    assert sorted(named) == [
        ("altered", "audit", "a/b140"),
        ("duplicated", "erp", "a/b120"),
        ("duplicated", "erp", "a/b130"),
        ("missing", "erp", "a/b107"),
        ("missing", "erp", "a/b108"),
        ("missing", "erp", "n"),
        ("refused", "erp", "a/b49"),
    ]


def test_a_loss_in_the_last_of_many_routes_is_listed_first(faulty: Night) -> None:
    listed = [(row["route"], row["missing"]) for row in faulty.summary["routes"]]

    assert len(listed) == LISTED
    assert sorted(listed[:2]) == [("orders", 0), ("orders", 2)]  # 1 altered, 2 missing
    assert listed[2] == (ROUTES[-1], 1)


def test_files_that_cannot_be_read_are_findings_and_the_others_count(
    faulty: Night, root: Path
) -> None:
    damaged = segment(root, "damaged")
    places = sorted(finding["place"] for finding in faulty.summary["findings"])

    assert places == sorted(
        str(path.relative_to(root)) for path in (damaged, damaged.with_name("foreign.parquet"))
    )
    assert faulty.summary["totals"]["received"] == 50 + 2 * 100 + len(ROUTES)


@pytest.mark.nightly
@pytest.mark.usefixtures("spark")
def test_a_loss_among_ten_thousand_routes_is_in_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_tables, "MAX_ROWS", min(10_000, result_tables.MAX_ROWS))
    routes = [f"route-{number:05}" for number in range(10_002)]
    archive(
        tmp_path / "archive",
        many_routes(received([0]), routes),
        many_routes(delivered([0]), routes[:-1]),
    )

    found = run(tmp_path / "archive").summary

    assert found["verdict"] == "not clean: 1 missing"
    assert found["totals"]["received"] == len(routes)
    assert (found["routes"][0]["route"], found["routes"][0]["missing"]) == (routes[-1], 1)


@pytest.mark.parametrize(
    ("date", "options", "text"),
    [
        pytest.param("2026-02-30", [], "'2026-02-30' is no date", id="no-such-day"),
        pytest.param("yesterday", [], "write YYYY-MM-DD", id="no-date"),
        pytest.param("2026-03-14", ["--spooled-days", "-1"], "0 or more", id="negative"),
    ],
)
def test_wrong_arguments_have_no_answer(
    tmp_path: Path, date: str, options: list[str], text: str
) -> None:
    root = tmp_path / "archive"
    root.mkdir()

    refused = run(root, *options, date=date)

    assert refused.status == 2
    assert text in refused.err
    assert text in refused.summary["findings"][0]["text"]


def test_an_unexpected_error_replaces_the_verdict_of_the_last_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a [division]")

    root, metrics = tmp_path / "archive", tmp_path / "night.prom"
    journal_folder(root).mkdir(parents=True)
    metrics.write_text("gateway_reconcile_status 0\n")
    monkeypatch.setattr(job, "judge", broken)

    failed = run(root, "--metrics", str(metrics))

    text = "a fault of the gateway; report it: ZeroDivisionError: a [division]"
    assert failed.status == 2
    assert failed.err.splitlines()[-1] == f"gateway reconcile: {text}"
    assert "in broken" in failed.err
    assert failed.summary["findings"][0]["text"] == text
    assert "gateway_reconcile_status 2\n" in metrics.read_text()


def test_the_metrics_are_written_when_the_json_cannot_be(tmp_path: Path) -> None:
    files = ["--json", str(tmp_path / "no" / "file"), "--metrics", str(tmp_path / "night.prom")]
    arguments = ["reconcile", str(tmp_path / "absent"), "--date", str(DAY), *files]

    with redirect_stderr(io.StringIO()) as err:
        status = reconcile.run(make_parser("reconcile").parse_args(arguments))

    assert status == 2
    assert "no/file" in err.getvalue()
    assert "gateway_reconcile_status 2\n" in (tmp_path / "night.prom").read_text()


def test_a_date_without_data(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, received([1]))
    segments(root, DAY)[0].write_bytes(b"")

    empty = run(root)

    assert empty.status == 2
    rules = [finding["rule"] for finding in empty.summary["findings"]]
    assert rules == ["changed-segment", "no-data"]
    assert "verdict: no answer" in empty.out
    written = root / "_reconciled" / f"date={DAY}" / "report.html"
    assert "No answer: this date could not be reconciled" in written.read_text("utf-8")


def test_no_archive(tmp_path: Path) -> None:
    refused = run(tmp_path / "nowhere")

    assert refused.status == 2
    assert "is not a folder" in refused.err


def test_an_archive_that_no_gateway_wrote_to_is_not_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the folder of a volume that is not mounted: each night finds it empty again."""
    for _ in range(2):
        assert main(["reconcile", str(tmp_path)]) == 2
        assert "no gateway has written to it; check the path" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        "reconcile {} --date 2026-03-14",
        "reconcile {} --from 2026-03-14 --to 2026-03-15",
        "archive compact {}",
        "archive names {}",
        "archive forget {} --keep-days 3",
    ],
)
def test_a_folder_that_is_no_archive_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "notes.txt").touch()

    assert main(command.format(tmp_path).split()) == 2
    assert "no gateway has written to it; check the path" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_the_running_session_is_used(spark: SparkSession) -> None:
    assert SparkSession.getActiveSession() is spark
