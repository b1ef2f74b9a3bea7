"""The findings, the exit status and the state of `--follow`."""

from __future__ import annotations

import json
import signal
from datetime import date, timedelta
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest

from gateway.archive.findings import Weight
from gateway.archive.layout import followed_folder
from gateway.cli.live.signals import stop_signals
from gateway.errors import ReconcileError
from gateway.model.copy_class import COLUMNS
from gateway.night.cli import reconcile as command
from gateway.night.reconcile.classify.result_tables import EXCEPTIONS
from gateway.night.reconcile.follow import day as day_module
from gateway.night.reconcile.follow.day import EXCEPTION_ROWS, FollowOptions
from gateway.night.reconcile.follow.follow import Follower, follow
from gateway.night.reconcile.follow.new_files import touched
from gateway.night.reconcile.follow.state import (
    FollowedDay,
    FollowState,
    advanced,
    first_date,
    read_state,
    sealed_until,
    write_state,
)
from tests.archive.samples import DAY, NOON, START, archive, delivered, received
from tests.archived import segments
from tests.night.reconcile.follow.following import (
    SECOND,
    Crash,
    appended,
    counts,
    once,
    parsed,
    run,
    silent,
    stops_at,
)
from tests.night.reconcile.follow.test_interrupted import follows_from
from tests.night.reconcile.night import LATE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]


def test_a_loss_is_reported_after_the_watermark_and_bad_files_are_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_module, "_MAX_BATCH_FOLDERS", 1)  # the second batch holds all minutes
    root = tmp_path / "an [odd] {name}*"
    archive(root, received([1, 2]), delivered([1]))

    assert run(root)[0] == 0
    printed = capsys.readouterr().out
    assert f"{DAY}: clean (1 of 1 arrived)" in printed  # the watermark is not past the second

    later = NOON + (LATE + 1) * SECOND
    archive(root, received([3], time=later), delivered([3], time=later), start=START + 1)
    good = segments(root, DAY)[0]
    good.with_name("cut.parquet").write_bytes(good.read_bytes()[:200])
    good.with_name("foreign.txt").write_text("no Parquet")
    good.with_name("nothing.parquet").write_bytes(b"")
    with pytest.raises(ReconcileError, match="the query failed"):
        once(root, stops_at("committing"))
    status, summary = run(root)

    assert status == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"{DAY} 12:00 orders -> erp: 1 missing" in lines
    assert lines[-1] == f"{DAY}: not clean: 1 missing, 2 errors in the archive"
    (only,) = summary["dates"]
    assert [(each["rule"], Path(each["place"]).name) for each in only["findings"]] == [
        ("unreadable-file", "cut.parquet"),
        ("unreadable-file", "nothing.parquet"),
    ]
    assert only["totals"]["missing"] == 1
    assert [row["batch"] for row in appended(root, "minutes")] == [1, 1]
    assert [row["batch"] for row in appended(root, "exceptions")] == [1]
    assert counts(root)["received"] == 3
    assert json.loads((followed_folder(root) / "summary.json").read_text()) == summary


@pytest.mark.nightly
def test_a_damaged_page_is_a_finding_once_and_the_other_files_count(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, received(range(500)), delivered(range(499)))
    archive(root, received([501]), start=START + 1)
    one = segments(root, DAY)[0]
    content = bytearray(one.read_bytes())
    content[len(content) // 3] ^= 0xFF  # only a page: the footer is whole, Spark stumbles
    one.write_bytes(content)

    follower, lines = once(root)

    (report,) = follower.reports()
    (found,) = (each for each in report.findings if each.weight is Weight.ERROR)
    assert (found.rule, found.place) == ("unreadable-file", str(one.relative_to(root)))
    assert lines.count(str(found)) == 1
    state = read_state(followed_folder(root))
    assert state is not None
    assert list(state.damaged) == [found]


@pytest.mark.nightly
def test_a_file_removed_during_a_batch_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, received([1]))
    archive(root, received([2]), start=START + 1)
    one = segments(root, DAY)[0]

    def show_step(step: str) -> None:
        if "reconciling" in step:
            one.unlink(missing_ok=True)

    follower, _ = once(root, show_step)

    (report,) = follower.reports()
    assert (report.answered, list(report.findings)) == (True, [])
    assert len(segments(root, DAY)) == 1


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param([], [("1", "missing")], {("1", "missing")}, id="new"),
        pytest.param([("1", "missing")], [("1", "missing")], set[str](), id="the-same"),
        pytest.param(
            [("1", "missing")], [("1", "delivered late")], {("1", "delivered late")}, id="another"
        ),
        pytest.param([("1", "missing")], [], {("1", "withdrawn")}, id="none-any-more"),
    ],
)
def test_only_exceptions_that_changed_are_appended(
    before: list[tuple[str, str]],
    now: list[tuple[str, str]],
    expected: set[tuple[str, str]],
) -> None:
    one, other = (
        pa.Table.from_pylist(
            [
                {"gateway": "g", "route": "r", "target": "t", "id": key, "class": name}
                for key, name in rows
            ],
            schema=EXCEPTIONS,
        )
        for rows in (now, before)
    )
    keyed = {("g", "r", "t", row["id"]): row for row in other.to_pylist()}

    found = EXCEPTION_ROWS.changed(one, keyed)

    assert {(row["id"], row["class"]) for row in found.to_pylist()} == expected


def test_a_file_of_a_sealed_date_is_reported_and_not_counted(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, received([1]))
    follows_from(root, date(2026, 3, 16))

    follower, lines = once(root)

    name = segments(root, DAY)[0].relative_to(root)
    (line,) = lines
    assert line.startswith(f"warning: {name}: came after {DAY} was sealed; gateway reconcile --da")
    assert follower.reports() == []


def test_it_ends_after_a_stop_request(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    root.mkdir()
    stopping = Event()
    stopping.set()
    options = FollowOptions(root, followed_folder(root), "local[1]", every=0.1)

    follow(Follower(options, silent, silent), stopping)

    assert run(root)[0] == 2  # no segment: no answer


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        pytest.param([], 2, id="no-date"),
        pytest.param([0, 0], 0, id="clean"),
        pytest.param([1, 0], 1, id="a-loss"),
        pytest.param([1, *[0] * 20], 1, id="a-loss-long-ago"),
        pytest.param([0] * 20, 0, id="clean-for-long"),
    ],
)
def test_the_exit_status_is_the_worst_of_all_dates(
    tmp_path: Path, missing: list[int], expected: int
) -> None:
    root = tmp_path / "archive"
    root.mkdir()
    counts = [dict.fromkeys((*COLUMNS, "marked"), 0) | {"missing": number} for number in missing]
    days = [FollowedDay(DAY + timedelta(number), [row]) for number, row in enumerate(counts)]
    follows_from(root, DAY)
    write_state(followed_folder(root), FollowState(0, DAY, days=days))
    follower = Follower(FollowOptions(root, followed_folder(root)), silent, silent)

    follower.resume()

    assert follower.status() == expected
    assert [each.day for each in follower.reports()] == [each.day for each in days[-7:]]


def test_signals_request_a_stop_and_are_restored_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    for number in (signal.SIGINT, signal.SIGTERM):
        with stop_signals() as stopping:
            signal.raise_signal(number)
            assert stopping.is_set()
    assert signal.getsignal(signal.SIGTERM) is before


def test_one_run_at_a_time(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, received([1]))

    def show_step(_: str, __: float | None = None) -> None:
        with pytest.raises(ReconcileError, match="another --follow uses this folder"):
            once(root)
        raise Crash

    with pytest.raises(Crash):
        once(root, show_step)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("{", "is no state of --follow", id="no-json"),
        pytest.param("{}", "is no state of --follow", id="nothing-in-it"),
        pytest.param(
            '{"version": 2}', "has version 2; this program reads version 1; remove", id="version"
        ),
        pytest.param(None, "checkpoint is absent; remove the folder", id="no-checkpoint"),
    ],
)
def test_a_damaged_state_is_an_error(tmp_path: Path, content: str | None, text: str) -> None:
    root = tmp_path / "archive"
    root.mkdir()
    folder = followed_folder(root)
    folder.mkdir(parents=True)
    write_state(folder, FollowState(3, DAY))
    if content is not None:
        (folder / "state.json").write_text(content)

    with pytest.raises(ReconcileError, match=text):
        once(root)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(["--follow", "--date", "2026-03-14"], "--date: is for the nightly", id="both"),
        pytest.param(["--follow", "--full"], "--full: is for the nightly", id="full"),
        *[
            pytest.param(["--follow", *option], f"{option[0]}: is for the nightly", id=option[0])
            for option in (
                ("--from", "2026-03-14"),
                ("--to", "2026-03-14"),
                ("--expect", "0" * 64),
                ("--metrics", "verdict.prom"),
                ("--seal-key", "key"),
                ("--in-flight-seconds", "9"),
            )
        ],
        pytest.param(["--follow", "--every", "0"], "--every is more than 0", id="no-time"),
        pytest.param(["--from", "2026-03-14"], "--from D and --to D belong together", id="half"),
        pytest.param(["--date", "2026-03-14", "--once"], "--once needs --follow", id="once"),
    ],
)
def test_wrong_arguments_are_an_error(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    summary_file = tmp_path / "summary.json"

    assert command.run(parsed(tmp_path, *options, "--json", str(summary_file))) == 2

    assert text in capsys.readouterr().err
    assert text in summary_file.read_text()


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        pytest.param("date=2026-03-14/hour=12/a", {14}, id="noon"),
        pytest.param("date=2026-03-14/hour=05/a", {13, 14}, id="early"),
        pytest.param("date=2026-03-14/hour=06/a", {14}, id="not-early"),
        pytest.param("date=2026-03-14/hour=18/a", {14, 15}, id="late"),
        pytest.param("date=2026-03-99/hour=00/a", set[int](), id="no-date"),
        pytest.param("date=2026-03-14/hour=x/a", set[int](), id="no-hour"),
    ],
)
def test_a_file_changes_its_date_and_those_near_it(place: str, expected: set[int]) -> None:
    assert {day.day for day in touched([Path(place)])} == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        pytest.param({}, 14, id="nothing-yet"),
        pytest.param({"east": NOON}, 14, id="today"),
        pytest.param({"east": NOON + 18 * 3600 * SECOND}, 15, id="hours-are-over"),
        pytest.param({"east": NOON + 18 * 3600 * SECOND - 1}, 14, id="hours-are-not-over"),
        pytest.param({"east": 0, "west": NOON + 20 * 3600 * SECOND}, 15, id="the-newest"),
    ],
)
def test_a_date_is_sealed_some_hours_after_its_end(last: dict[str, int], expected: int) -> None:
    assert sealed_until(last, DAY).day == expected


def test_a_clock_in_the_future_moves_no_watermark() -> None:
    assert advanced({"east": 5}, {"east": 99, "west": 3}, now=10) == {"east": 10, "west": 3}
    assert advanced({"east": 5}, {"east": 4}, now=10) == {"east": 5}
    assert first_date([date(2026, 3, 1), DAY, date(2099, 1, 1)], DAY).day == DAY.day - 1
