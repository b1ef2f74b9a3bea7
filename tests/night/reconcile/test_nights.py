"""Nights that depend on each other: spooled copies, replays, and gaps of sources."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from gateway.archive.gaps import NO_ID
from gateway.archive.journal.records import Cell, Rows
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import (
    HOUR,
    SECOND,
    SPOOLED_DAYS,
    JournalName,
    day_start,
    reconciled_folder,
)
from gateway.archive.location import ArchiveLocation
from gateway.archive.signed_json import NO_TERM, Term
from gateway.archive.storage import LocalStorage
from gateway.cli import main
from gateway.errors import ReconcileError
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.night_record import night_path
from gateway.night.archive.open_archive import open_archive
from gateway.night.archive.seals.seal import End
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.nights.marker import marker_path
from gateway.night.reconcile.nights.run import run_night
from gateway.night.reconcile.report.run import NOTHING, Run
from gateway.night.reconcile.report.terminal import print_report
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.samples import (
    DAY,
    NOON,
    QUICK,
    START,
    archive,
    dead,
    delivered,
    identity,
    put,
    received,
)
from tests.night.archive.compaction.days import merged_here

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

DAYS = 86_400_000_000
MINUTE = 60_000_000


def silent(_text: str, _share: float | None = None) -> None:
    return None


def printed(run: Run) -> str:
    console = Console(file=StringIO(), width=200)
    print_report(run, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def gap(rule: str, begin: int, end: int, reason: str = "", **more: Cell) -> Rows:
    """A gap row of the route's source."""
    common: dict[str, Cell] = {
        "leg": "gap", "route": "orders", "endpoint": "plant", "system": "mqtt", "name": "a/#",
        "id": NO_ID, "begin": begin, "time": end, "rule": rule,
        "reason": reason, "outcome": "gap", **more,
    }  # fmt: skip
    return Rows(1, common)


def test_a_night_becomes_clean_when_its_copies_arrive(tmp_path: Path) -> None:
    root, output = tmp_path / "archive", tmp_path / "output"
    ids = [1, 2, 3, 4]
    spooled = delivered([2], received=NOON, leg="spooled", outcome="spooled")
    archive(
        root,
        received(ids, received=NOON),
        delivered([1], received=NOON),
        spooled,
        dead(4, received=NOON),
    )
    later = DAY + timedelta(days=3)
    first = Job(output, full=False, late=10**6, now=NOON + DAYS)

    night = reconcile(open_archive(root), DAY, first, silent)

    assert night.verdict == "not clean: 1 missing"
    assert {name: night.total(name) for name in ("in flight", "refused")} == {
        "in flight": 1, "refused": 1,
    }  # fmt: skip

    at = NOON + 3 * DAYS
    archive(
        root,
        *[received([9], time=at), delivered([9], time=at, received=at)],
        delivered([2], time=at, received=NOON),
        delivered([3, 4], time=at, received=NOON, replayed=True),
        start=START + 1,
    )
    report = reconcile(open_archive(root), later, Job(output, late=10**6, now=at + DAYS), silent)

    assert report.verdict == "clean"
    again = reconcile(
        open_archive(root), DAY, Job(tmp_path / "again", full=False, late=10**6), silent
    )
    assert (again.verdict, again.total("recovered"), again.total("delivered")) == ("clean", 2, 2)


def seen(numbers: Sequence[int], at: int, *, identified: bool) -> Rows:
    """The rows of the tap at a target, as it records them: by its own time and its own ids."""
    ids = [identity(number).hex() if identified else None for number in numbers]
    own = [identity(number, at) for number in numbers]
    rows = delivered(numbers, time=at, received=at, leg="observed")
    return Rows(len(numbers), rows.common, {**rows.columns, "id": own, "origin_id": ids})


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("identified", "full"),
    [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ],
)
def test_a_tap_sees_copies_that_were_spooled_for_days(
    tmp_path: Path, *, identified: bool, full: bool
) -> None:
    """Both dates are judged by their sightings: that of the receipt, and that of the delivery."""
    root, at = tmp_path / "archive", NOON + 2 * DAYS
    archive(
        root,
        *[received([1, 2, 3, 4], received=NOON), delivered([1], received=NOON)],
        delivered([2, 4], received=NOON, leg="spooled", outcome="spooled"),
        seen([1], NOON, identified=identified),
    )
    archive(
        root,
        *[received([9], time=at, received=at), delivered([9], time=at, received=at)],
        delivered([2, 4], time=at, received=NOON),
        delivered([3], time=at, received=NOON, replayed=True),
        seen([2, 3, 9], at, identified=identified),
        start=START + 1,
    )

    night = run_night(open_archive(root), Job(now=at + DAYS, late=10**6, full=full), silent)

    (earlier,) = night.report.carried
    assert earlier["verdict"] == "not clean: 1 lost in target"
    summary = json.loads((reconciled_folder(root, DAY) / "summary.json").read_bytes())
    assert [row["id"][-1] for row in summary["samples"] if row["class"] != "recovered"] == ["4"]
    assert summary["totals"]["recovered"] == 1
    assert night.report.verdict == "clean"


@pytest.mark.nightly
def test_a_night_judges_again_what_its_copies_in_flight_became(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    spooled = delivered([1], received=NOON, leg="spooled", outcome="spooled")
    archive(root, received([1], received=NOON), spooled)
    compact_day(ArchiveLocation(root), DAY, merged_here, lambda _: None)
    first = run_night(open_archive(root), Job(now=NOON + DAYS), silent)
    marker = json.loads((root / marker_path(DAY)).read_bytes())
    assert (marker["night"], marker["in_flight"]) == (1, 1)
    assert (first.report.total("in flight"), first.link.unsettled[0].date) == (1, str(DAY))
    at = NOON + 2 * DAYS
    archive(
        root,
        *[received([9], time=at), delivered([9], time=at, received=at)],
        delivered([1], time=at, received=NOON),
        start=START + 1,
    )

    second = run_night(open_archive(root), Job(now=at + DAYS, late=10**6), silent, first.link.mac)

    (carried,) = second.report.carried
    assert (carried["date"], carried["before"], carried["after"]) == (str(DAY), 1, 0)
    assert second.run.exit_status == 0
    assert not second.link.unsettled


def test_a_date_with_copies_in_flight_that_was_lost_is_judged_when_it_is_back(
    tmp_path: Path,
) -> None:
    """Somebody moved the oldest date away, and no removal took it."""
    root = tmp_path / "archive"
    spooled = delivered([1], received=NOON, leg="spooled", outcome="spooled")
    archive(root, received([1], received=NOON), spooled)
    run_night(open_archive(root), Job(now=NOON + DAYS), silent)
    at = NOON + DAYS
    archive(root, received([9], time=at), delivered([9], time=at, received=at), start=START + 1)
    folders = [root / f"date={DAY}", root / "_seals" / f"date={DAY}"]
    for number, folder in enumerate(folders):
        folder.rename(tmp_path / str(number))

    night = run_night(open_archive(root), Job(now=at + DAYS, late=10**6), silent)

    assert night.run.status == 1
    assert "forgotten-unresolved" in {each.rule for each in night.run.errors}
    for number, folder in enumerate(folders):
        (tmp_path / str(number)).rename(folder)
    night = run_night(open_archive(root), Job(now=at + 2 * DAYS, late=10**6), silent)
    assert [each.date for each in night.link.unsettled] == [str(DAY)]
    assert night.link.unsettled[0].in_flight == 1
    assert not night.run.errors


@pytest.mark.nightly
def test_a_copy_whose_spool_is_lost_is_missing_before_its_date_is_removed(tmp_path: Path) -> None:
    """With two days to keep: the night after the days of the spool still finds the rows."""
    root, today = tmp_path / "archive", datetime.now(UTC).date()
    day = today - timedelta(days=SPOOLED_DAYS + 1)
    midnight, night = day_start(day), HOUR  # every night runs at one o'clock
    late = midnight + DAYS - MINUTE
    spooled = delivered([1], time=late, received=late, leg="spooled", outcome="spooled")
    writer = ArchiveWriter(root, "edge", late, QUICK, clock=lambda: late)
    put(writer, received([1], time=late, received=late), spooled)
    writer.close()
    first = run_night(open_archive(root), Job(now=midnight + DAYS + night), silent)
    assert (first.report.total("in flight"), first.link.unsettled[0].date) == (1, str(day))
    forget = ["archive", "forget", str(root), "--keep-days", "2"]

    assert main(forget) == 0
    last = run_night(open_archive(root), Job(now=day_start(today) + night), silent)

    assert last.report.verdict == "not clean: 1 missing"
    assert not last.link.unsettled
    assert main(forget) == 0
    assert not (root / f"date={day}").exists()
    after = run_night(open_archive(root), Job(now=day_start(today) + DAYS + night), silent)
    assert (after.run.headline, after.run.verdict) == (NOTHING, "")


def test_a_second_delivery_on_a_later_day_takes_back_a_clean_verdict(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, received([1], received=NOON), delivered([1], received=NOON))
    first = run_night(open_archive(root), Job(now=NOON + DAYS), silent)
    assert (first.report.verdict, first.link.unsettled) == ("clean", ())
    at = NOON + 2 * DAYS
    archive(
        root,
        *[received([9], time=at), delivered([9], time=at, received=at)],
        *[delivered([1], time=at, received=NOON), delivered([7], time=at, received=NOON)],
        start=START + 1,
    )

    second = run_night(open_archive(root), Job(now=at + DAYS, late=10**6), silent)

    (again,) = second.report.carried
    assert (again["date"], again["status_before"], again["status"]) == (str(DAY), 0, 1)
    assert again["verdict"] == "not clean: 1 unexpected, 1 duplicated"
    assert second.run.exit_status == 1
    third = run_night(open_archive(root), Job(now=at + DAYS), silent)
    assert third.report.day is None
    assert (third.run.exit_status, third.run.verdict) == (1, "not clean: 1 of 2 dates")
    with pytest.raises(ReconcileError, match="no night of the chain has the digest"):
        run_night(open_archive(root), Job(now=at + DAYS), silent, "0" * 64)


@pytest.mark.parametrize("days", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_night_that_resumes_repeats_what_the_interrupted_one_found(
    tmp_path: Path, days: int
) -> None:
    """The process of the first run dies: nobody got its exit status."""
    root, at = tmp_path / "archive", NOON + DAYS
    archive(root, received([1], received=NOON))
    own = received([9], time=at, received=at), delivered([9], time=at, received=at)
    archive(root, *own, start=START + 1)
    later = DAY + timedelta(days=1)

    def killed(step: str, share: float | None = None) -> None:
        if share is None and step == f"checking the files of {later}":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_night(open_archive(root), Job(now=at + DAYS), killed)
    second = run_night(open_archive(root), Job(now=at + (1 + days) * DAYS), silent).run
    third = run_night(open_archive(root), Job(now=at + (1 + days) * DAYS), silent).run
    fourth = run_night(open_archive(root), Job(now=at + (2 + days) * DAYS), silent).run

    assert (second.report.day, second.report.verdict, second.exit_status) == (later, "clean", 1)
    assert second.verdict == third.verdict == "not clean: 1 of 2 dates"
    assert f"judged by an earlier run: {DAY}, not clean: 1 missing" in printed(second)
    assert (third.report.day, third.exit_status) == (None, 1)
    assert [row["date"] for row in third.dates] == [str(DAY), str(later)]
    assert (fourth.headline, fourth.exit_status, fourth.dates) == (NOTHING, 0, [])


def test_an_evening_before_any_date_has_ended_has_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC).timestamp() * 1_000_000
    today = max(day_start(datetime.now(UTC).date()), int(now) - MINUTE)
    archive(tmp_path, received([1], time=today, received=today), start=today)

    assert main(["reconcile", str(tmp_path), "--json", str(tmp_path / "night.json")]) == 0

    assert capsys.readouterr().out.splitlines() == [NOTHING]
    found = json.loads((tmp_path / "night.json").read_text())
    assert (found["headline"], found["verdict"], found["status"]) == (NOTHING, None, None)


def test_what_a_night_finds_beside_its_dates_leaves_their_verdict_alone(tmp_path: Path) -> None:
    root, at = tmp_path / "archive", NOON + 2 * DAYS
    archive(root, received([1], received=NOON), delivered([1], received=NOON))
    run_night(open_archive(root), Job(now=NOON + DAYS), silent)
    run_night(open_archive(root), Job(now=at), silent)
    own = received([9], time=at, received=at), delivered([9], time=at, received=at)
    archive(root, *own, start=START + 1)
    (root / night_path(1)).unlink()

    judged = run_night(open_archive(root), Job(now=at + DAYS), silent)
    idle = run_night(open_archive(root), Job(now=at + 2 * DAYS), silent)
    acknowledge = ["archive", "acknowledge", str(root), "missing-night", "_nights/1.json"]
    assert main([*acknowledge, "--why", "an operator removed it"]) == 0
    known = run_night(open_archive(root), Job(now=at + 2 * DAYS), silent)

    summary = json.loads(
        (reconciled_folder(root, DAY + timedelta(days=2)) / "summary.json").read_bytes()
    )
    assert (summary["status"], summary["findings"]) == (0, [])
    assert {each.status for each in judged.link.dates} == {0}
    assert (judged.report.verdict, idle.run.dates) == ("clean", [])
    for night in (judged, idle):
        assert [each.rule for each in night.link.findings] == ["missing-night"]
        assert (night.run.exit_status, night.run.verdict) == (
            1, "not clean: 1 error of the night",
        )  # fmt: skip
    assert (known.run.exit_status, known.run.errors) == (0, [])
    assert known.link.findings == idle.link.findings
    (told,) = known.run.findings
    assert told.text.endswith("is missing (acknowledged: an operator removed it)")


@pytest.mark.nightly
def test_a_sighting_after_midnight_may_be_in_an_open_journal(tmp_path: Path) -> None:
    root, midnight = tmp_path / "archive", day_start(DAY) + DAYS
    last = midnight - 1
    archive(
        root,
        *[received([1], received=NOON), delivered([1], received=NOON)],
        seen([1], NOON, identified=True),
        received([2, 3], time=last, received=last),
        delivered([2, 3], time=last, received=last),
    )
    at = midnight + SECOND
    writer = ArchiveWriter(root, "edge", START + 1, QUICK, clock=lambda: at)
    put(writer, seen([2], at, identified=True))

    first = run_night(open_archive(root), Job(now=midnight + 5 * MINUTE), silent).report
    writer.close()
    second = run_night(open_archive(root), Job(now=midnight + DAYS + HOUR), silent).report

    assert first.verdict == "clean"
    (again,) = [row for row in second.carried if row["date"] == str(DAY)]
    assert (again["status_before"], again["verdict"]) == (0, "not clean: 1 lost in target")


@pytest.mark.nightly
@pytest.mark.parametrize("end", [End.CLOSED, End.KILLED])
def test_the_proof_of_an_evening_without_messages_may_come_after_its_night(
    tmp_path: Path, end: End
) -> None:
    """Nothing came after the first journal; the seal that reaches past midnight was not there."""
    root, evening, midnight = tmp_path / "archive", NOON + 8 * HOUR, day_start(DAY) + DAYS
    table, _ = to_table([received([1]), delivered([1])])
    table = table.set_column(table.schema.get_field_index("gateway"), "gateway", [["edge"] * 2])
    seal = partial(write_sealed, LocalStorage(root), gateway="edge")
    names = [str(JournalName("edge", START, number)) for number in (1, 2)]
    closed = seal(names[0], sort_rows(table), closed=evening, end=end)
    first = run_night(open_archive(root), Job(now=midnight + HOUR), silent).report
    opened = evening if end is End.CLOSED else midnight + HOUR
    seal(
        *(names[1], table[:0]),
        previous=closed.link, opened=opened, closed=midnight + 2 * HOUR, end=End.STOPPED,
    )  # fmt: skip

    second = run_night(open_archive(root), Job(now=midnight + DAYS + HOUR), silent).report

    assert "open-chain" in [each.rule for each in first.errors]
    assert (second.day, second.verdict) == (DAY, "clean")


@pytest.mark.nightly
@pytest.mark.parametrize("kept", ["both", "new", "deleted"])
def test_a_date_without_whole_results_is_judged_again(tmp_path: Path, kept: str) -> None:
    """As an interrupted replacement in a bucket leaves it: files under the new name."""
    root = tmp_path / "archive"
    archive(root, received([1], received=NOON), delivered([1], received=NOON))
    run_night(open_archive(root), Job(now=NOON + DAYS), silent)
    night = reconciled_folder(root, DAY)
    if kept != "deleted":
        shutil.copytree(night, night.with_name(f".new-{night.name}"))
    if kept != "both":
        shutil.rmtree(night)

    report = run_night(open_archive(root), Job(now=NOON + 3 * DAYS), silent).report

    assert (report.day, report.verdict) == (DAY, "clean")
    assert (night / "summary.json").exists()
    assert not night.with_name(f".new-{night.name}").exists()


@pytest.mark.nightly
def test_two_runs_of_a_date_do_not_share_a_folder(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(root, received([1, 2]), delivered([1]))
    refused: list[str] = []

    def second(_step: str, share: float | None = None) -> None:
        if share is None:
            with pytest.raises(ReconcileError) as found:
                reconcile(open_archive(root), DAY, Job(), silent)
            refused.append(str(found.value))

    report = reconcile(open_archive(root), DAY, Job(), second)

    assert report.total("missing") == 1
    night = reconciled_folder(root, DAY)
    assert {each.name for each in night.iterdir()} >= {"exceptions", "minutes", "summary.json"}
    assert len(set(refused)) == 1
    assert f"{night.with_name('.date=2026-03-14.lock')}: another gateway reconcile" in refused[0]
    assert f"process {os.getpid()} on " in refused[0]
    third = reconcile(open_archive(root), DAY, Job(), silent)
    assert third.total("missing") == 1  # the lock ends with its run


def test_gaps_of_sources_have_their_own_verdict(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    archive(
        root,
        received([1], received=NOON),
        delivered([1], received=NOON),
        gap("session-lost", NOON, NOON + MINUTE, "the broker had no session", lost=7),
        gap("away", NOON + 2 * MINUTE, NOON + 3 * MINUTE),
        gap("not-running", NOON - MINUTE, NOON - MINUTE, "the gateway was stopped"),
        gap("disconnected", NOON - 2 * DAYS, NOON - 2 * DAYS + MINUTE),  # of another date
    )

    report = reconcile(open_archive(root), DAY, Job(tmp_path / "out", full=False, now=NOON), silent)
    accepted = reconcile(
        open_archive(root), DAY, Job(tmp_path / "out", accept_gaps=True, now=NOON), silent
    )

    assert (report.status, report.verdict) == (3, "clean for what was received, 2 source gaps")
    assert accepted.status == 0
    assert accepted.gaps == report.gaps
    recorded = [each for each in report.gaps if each.endpoint]  # else by the chain of journals
    stopped = recorded.pop(0)
    assert (stopped.rule, stopped.end) == ("not-running", recorded[0].begin)  # now
    assert [(each.rule, each.lost, each.kept) for each in recorded] == [
        ("session-lost", 7, False),
        ("away", None, True),
    ]


@pytest.mark.parametrize("killed", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_two_instances_of_a_gateway_are_judged_as_one(tmp_path: Path, *, killed: bool) -> None:
    """Instance b ends with a copy in its spool, which a takes over with the lease."""
    root = tmp_path / "archive"
    spooled = delivered([2], received=NOON, leg="spooled", outcome="spooled")
    first, second = Term(1, NOON - HOUR, 10), Term(2, NOON + MINUTE, 10)
    writer = ArchiveWriter(
        root, "edge", START, QUICK, instance="b", lease=first, clock=lambda: NOON
    )
    put(writer, received([1, 2]), delivered([1], received=NOON), spooled)
    if killed:
        shutil.copytree(root, tmp_path / "killed")
    writer.close()
    if killed:  # its journal waits for a converter
        shutil.rmtree(root)
        shutil.move(tmp_path / "killed", root)
    later = NOON + 2 * MINUTE
    writer = ArchiveWriter(
        root, "edge", START + 1, QUICK, instance="a", lease=second, clock=lambda: later
    )
    put(
        writer,
        delivered([2], time=later, received=NOON),
        *[received([3], time=later), delivered([3], time=later, received=later)],
    )
    writer.close()

    report = run_night(open_archive(root), Job(now=NOON + DAYS), silent).report

    assert report.verdict == "clean"
    assert [(row["gateway"], row["received"], row["delivered"]) for row in report.gateways] == [
        ("edge", 3, 3)
    ]
    assert [(each.writer, each.lease, each.overlap) for each in report.holders] == [
        ("edge@b", 1, 0), ("edge@a", 2, 0),
    ]  # fmt: skip
    (pause,) = [each for each in report.gaps if each.rule == "not-running" and each.kept][:1]
    assert (pause.begin, pause.end) == (
        datetime.fromtimestamp(NOON / 1e6, UTC), datetime.fromtimestamp(later / 1e6, UTC),
    )  # fmt: skip
    assert "active: edge@a, 12:02:00 to 12:02:00, lease 2" in printed(Run(report))


@pytest.mark.parametrize("full", [True, False], ids=["full", "sets"])
@pytest.mark.parametrize("paired", [True, False], ids=["paired", "alone"])
def test_the_answers_that_a_frozen_holder_reads_when_it_wakes_are_in_order(
    tmp_path: Path, *, paired: bool, full: bool
) -> None:
    """Instance b sent, froze, and reads its answers after a sent later messages of these names.

    Order is compared within a turn only: no clock is compared across leases. A gateway alone keeps
    its order over its restarts.
    """
    root, ids = tmp_path / "archive", [1, 2, 3]
    woken, later = NOON + 20 * SECOND, NOON + 12 * SECOND
    terms = [Term(1, NOON - HOUR, 10), Term(2, NOON + 11 * SECOND, 10)] if paired else [NO_TERM] * 2
    for instance, lease, start, at, answered in (
        ("b", terms[0], START, NOON, woken),
        ("a", terms[1], START + 1, later, later + 1),
    ):
        writer = ArchiveWriter(
            root, "edge", start, QUICK, instance=instance if paired else "", lease=lease,
            clock=partial(int, answered),
        )  # fmt: skip
        own: dict[str, list[Cell]] = {"id": [identity(number, start) for number in ids]}
        for rows in (
            received(ids, received=at, time=at),
            delivered(ids, received=at, time=answered),
        ):
            put(writer, Rows(rows.count, rows.common, {**rows.columns, **own}))
        writer.close()

    report = reconcile(
        open_archive(root), DAY, Job(tmp_path / "out", full=full, now=NOON + DAYS), silent
    )

    assert report.total("out of order") == (0 if paired else 3)
    assert report.total("delivered") == (6 if paired else 3)


@pytest.mark.parametrize("away", [False, True], ids=["here", "away"])
@pytest.mark.parametrize("key", [None, b"a key of the seals"], ids=["plain", "keyed"])
def test_a_gateway_that_is_killed_at_half_past_midnight_leaves_the_day_before_clean(
    tmp_path: Path, *, key: bytes | None, away: bool
) -> None:
    """Its journal has the outcome of a copy of the evening. It may be away at the first night."""
    root, options = tmp_path / "archive", replace(QUICK, seal_key=key)
    midnight = day_start(DAY + timedelta(days=1))
    evening, killed = midnight - MINUTE, midnight + 30 * MINUTE
    spooled = delivered([2], received=evening, time=evening, leg="spooled", outcome="spooled")
    writer = ArchiveWriter(root, "edge", START, options, clock=partial(int, evening))
    put(writer, received([1, 2], time=evening), delivered([1], received=evening, time=evening))
    put(writer, spooled)
    writer.close()
    writer = ArchiveWriter(root, "edge", midnight, options, clock=partial(int, midnight + MINUTE))
    put(writer, delivered([2], received=evening, time=killed))
    shutil.copytree(root, tmp_path / "killed")
    writer.close()
    shutil.rmtree(root)
    shutil.move(tmp_path / "killed", root)
    journal = root / ".journal"
    if away:
        journal.rename(tmp_path / "away")
    killed_one = open_archive(root, key)

    first = run_night(killed_one, Job(now=midnight + 2 * HOUR), silent)

    assert (first.report.verdict == "clean") is not away
    assert first.report.total("in flight") == away
    if away:
        (tmp_path / "away").rename(journal)
    later = midnight + 10 * HOUR
    again = ArchiveWriter(root, "edge", later, options, clock=partial(int, later))
    again.close()
    second = run_night(killed_one, Job(now=midnight + DAYS + 2 * HOUR), silent)

    dates = {each.date: each for each in second.link.dates}
    assert dates.get(str(DAY), first.link.dates[0]).status == 0
    assert second.run.status == 0
