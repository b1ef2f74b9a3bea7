"""`--follow` ends in the classes of the nightly run, whatever interrupts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from threading import Event

import pytest

from gateway.archive.layout import followed_folder
from gateway.archive.location import ArchiveLocation
from gateway.errors import ReconcileError
from gateway.model.copy_class import TALLIES
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.follow.follow import Follower
from gateway.night.reconcile.follow.state import (
    FollowState,
    write_state,
)
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.maintenance.compact import compact
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.session import spark_session
from tests.archive.samples import DAY, NOON, START, archive, delivered, received
from tests.night.reconcile.follow.following import (
    COUNTED,
    appended,
    classes,
    counts,
    once,
    silent,
    stops_at,
)
from tests.night.reconcile.night import FEW_HOURS, HOURS, LATE, Night, model, night

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]

HOURS_OF_ONE_DATE = (8, 11, 12, 15, 24)  # 24 moves the watermark past the day
CRASHES = [
    (33, FEW_HOURS, (0, 2), "reconciling"),
    *((seed, HOURS, (0, 1, 2, 3), "committing") for seed in (23, 25, 30, 31)),
]  # nights that lose a message in their first part
ROOT = Path(__file__).parents[4]


def parts(made: Night, *starts: int) -> list[Night]:
    """The segments of the night in groups, from each of these numbers to the next."""
    ends = [*starts[1:], 1_000]
    return [
        Night(
            {key: rows for key, rows in made.rows.items() if start <= key[1] < end},
            links=made.links,
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def follows_from(root: Path, day: date) -> None:
    """Write the state of a run that has sealed the earlier dates."""
    folder = followed_folder(root)
    (folder / "checkpoint").mkdir(parents=True)
    write_state(folder, FollowState(-1, day))


def by_way(routes: Sequence[Row]) -> list[Row]:
    """The counts of each route and target; the nightly run adds notes from the segments."""
    columns = ("route", "target", *TALLIES)
    found = [{name: row[name] for name in columns} for row in routes]
    return sorted(found, key=lambda row: (str(row["route"]), str(row["target"])))


@pytest.mark.nightly
def test_files_that_arrive_in_two_parts_give_the_classes_of_the_model(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    made = night(33, hours=HOURS_OF_ONE_DATE)
    expected = model(made)
    first, second = parts(made, 0, 2)
    follows_from(root, DAY)

    first.write(root)
    once(root)
    early = {copy for copy, name in classes(root).items() if name == "missing"}
    second.write(root)
    once(root)

    assert early & {copy for copy, name in expected.items() if name == "missing"}
    assert classes(root) == expected


@pytest.mark.nightly
@pytest.mark.parametrize(("seed", "hours", "starts", "step"), CRASHES)
def test_a_crash_in_every_batch_changes_no_class_and_repeats_no_row(
    tmp_path: Path, seed: int, hours: Sequence[int], starts: tuple[int, ...], step: str
) -> None:
    root = tmp_path / "archive"
    made = night(seed, hours=hours)
    first, *others = parts(made, *starts)
    follows_from(root, DAY)
    first.write(root)
    follower, _ = once(root)

    for part in others:
        part.write(root)
        with pytest.raises(ReconcileError, match="the query failed"):
            once(root, stops_at(step))
        follower, _ = once(root)

    assert classes(root) == model(made)
    agrees_with_the_nightly_run(follower, root, Job(tmp_path / "night", late=LATE, now=NOON))
    rows = appended(root, "exceptions"), appended(root, "minutes")
    for commit in (followed_folder(root) / "checkpoint" / "commits").glob("*"):
        commit.unlink()  # killed before Spark knew that the batch is committed
    once(root, stops_at("reconciling"))
    assert (appended(root, "exceptions"), appended(root, "minutes")) == rows


def agrees_with_the_nightly_run(follower: Follower, root: Path, job: Job) -> None:
    report = reconcile(open_archive(root), DAY, job, silent)
    followed = follower.days[DAY].report(root, strict=False)
    assert followed.verdict == report.verdict
    assert by_way(followed.routes) == by_way(report.routes)
    assert counts(root) == {name: report.total(name) for name in COUNTED}


@pytest.mark.nightly
def test_compaction_and_a_new_run_change_nothing(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    made = night(22)
    made.write(root)
    once(root)
    before = appended(root, "exceptions"), appended(root, "minutes")

    with spark_session("local[1]") as spark:
        compact(lambda: spark, ArchiveLocation(root), DAY, silent)
    _, lines = once(root)
    archive(root, received([1], time=NOON), delivered([1], time=NOON), start=START + 9)
    once(root)

    assert lines == []
    assert classes(root) == model(made)
    assert appended(root, "exceptions") == before[0]
    assert len(appended(root, "minutes")) == len(before[1]) + 1


@pytest.mark.nightly
@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_process_group_lets_a_batch_finish(
    tmp_path: Path, ends: signal.Signals
) -> None:
    """As Ctrl-C at a terminal, or systemd's stop: Java and its tasks are in another group."""
    root = tmp_path / "archive"
    made = night(24, messages=50)
    made.write(root)
    follows = [sys.executable, "-m", "gateway", "reconcile", str(root), "--follow", "--late", "120",
               "--spooled-days", "100000"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    pause, printed = Event(), tmp_path / "printed"  # the event is never set: it only waits

    with printed.open("w+") as output:
        child = subprocess.Popen(  # noqa: S603
            follows, env=environment, stdout=output, stderr=output, process_group=0
        )
        while "reconciling" not in printed.read_text() and child.poll() is None:
            pause.wait(0.05)
        os.killpg(child.pid, ends)
        status = child.wait(120)

    assert status == 1, printed.read_text()
    assert "Traceback" not in printed.read_text()
    assert classes(root) == model(made)


@pytest.mark.nightly
def test_a_killed_process_leaves_no_row_twice_and_a_signal_ends_it(
    tmp_path: Path,
) -> None:
    root = tmp_path / "archive"
    made = night(23, messages=150)
    made.write(root)
    follows = [sys.executable, "-m", "gateway", "reconcile", str(root), "--follow", "--late", "120",
               "--spooled-days", "100000"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    pause = Event()  # never set: it only waits

    for wanted, ends in (("reconciling", signal.SIGKILL), ("committing", signal.SIGTERM)):
        with (tmp_path / wanted).open("w+") as output:
            child = subprocess.Popen(follows, env=environment, stdout=output, stderr=output)  # noqa: S603
            while wanted not in (tmp_path / wanted).read_text() and child.poll() is None:
                pause.wait(0.05)
            child.send_signal(ends)
            status = child.wait(120)
        assert status == (-ends if ends == signal.SIGKILL else 1), (tmp_path / wanted).read_text()

    assert classes(root) == model(made)
    assert {row["batch"] for row in appended(root, "exceptions")} == {0}
