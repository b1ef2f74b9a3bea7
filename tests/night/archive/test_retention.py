from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from gateway.archive.heads import WriterHead, head_path
from gateway.archive.judged_journals import Seen
from gateway.archive.layout import HEADS, HOUR, NIGHTS, JournalName, oldest_kept, seal_folder
from gateway.archive.signed_json import Previous
from gateway.archive.storage import LocalStorage, RemoteStorage, Storage, StoredFile
from gateway.cli import main
from gateway.night.archive import retention
from gateway.night.archive.night_record import DateRecord, Night
from gateway.night.archive.retention import (
    RemovedDays,
    forgotten_dates,
    oldest_needed,
    remove_days,
)
from gateway.night.archive.seals.seal import End
from gateway.night.archive.seals.store import seal_path
from gateway.night.archive.segments.convert import main as convert
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.night.archive.segments.write import write_rows
from gateway.night.archive.verification.verify import verify_archive, verify_day
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.samples import START, archive, delivered, received
from tests.night.archive.verification.chained import KEY, chained

TODAY = date(2026, 3, 14)
DAY = timedelta(days=1)
OTHERS = ("date=soon", "date=2026-13-45", "date=2026-1-1", "_reconciled/date=2026-03-01", "notes")


def noon(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()) * 1_000_000


def filled(root: Path, today: date = TODAY) -> None:
    """Rows and seals of five days, one of them without its rows, and folders that are not days."""
    for number in range(5):
        table, _ = to_table([delivered([1], time=noon(today - number * DAY), gateway="edge")])
        list(write_rows(LocalStorage(root), table, f"edge-{number}-000000", 0, 1))
        seals = root / seal_folder(today - number * DAY)
        seals.mkdir(parents=True)
        (seals / f"edge-{number}-000000.json").write_text("{}")
    shutil.rmtree(root / f"date={today - 4 * DAY}")
    for name in OTHERS:
        (root / name).mkdir(parents=True)
    (root / ".journal").mkdir()
    (root / ".journal" / "edge-1-000000.open").write_bytes(b"rows of an old day")


def days(root: Path, folder: str) -> list[int]:
    return sorted(int(path.name[-2:]) for path in (root / folder).glob("date=2026-03-*"))


def data(storage: Storage) -> list[StoredFile]:
    """The files but the statement about what was removed."""
    return [each for each in storage.files(Path()) if each.path.parts[0] != "_removed"]


def local(root: Path) -> Storage:
    return LocalStorage(root)


def remote(root: Path) -> Storage:
    return RemoteStorage(f"file://{quote(str(root))}")


@pytest.mark.parametrize("storage", [local, remote])
@pytest.mark.parametrize(
    ("keep", "left"),
    [
        pytest.param(0, [13, 14], id="never-the-current"),
        pytest.param(1, [13, 14], id="one-whole-day"),
        pytest.param(3, [11, 12, 13, 14], id="three"),
        pytest.param(30, [10, 11, 12, 13, 14], id="all"),
    ],
)
def test_old_days_are_removed_with_their_seals(
    tmp_path: Path, storage: Callable[[Path], Storage], keep: int, left: list[int]
) -> None:
    root = tmp_path / "an [odd] name"
    filled(root)
    files = storage(root)
    before = len(data(files))

    removed = remove_days(files, oldest_kept(keep, TODAY))

    with_rows = [day for day in (11, 12, 13, 14) if day not in left]
    assert [day.day for day in removed.days] == with_rows
    assert days(root, "_seals") == left
    assert days(root, ".") == [day for day in left if day != 10]
    assert removed.files == before - len(data(files))
    assert (removed.size > 0) == (left[0] != 10)
    assert all((root / name).is_dir() for name in OTHERS)
    assert (root / ".journal" / "edge-1-000000.open").exists()
    assert remove_days(files, oldest_kept(keep, TODAY)) == RemovedDays()


def test_days_that_another_process_removes_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)
    rmtree = shutil.rmtree

    def interrupted(folder: Path) -> None:
        monkeypatch.setattr(shutil, "rmtree", rmtree)
        rmtree(next(path for path in folder.iterdir()))
        raise FileNotFoundError(folder)

    monkeypatch.setattr(shutil, "rmtree", interrupted)

    remove_days(LocalStorage(tmp_path), TODAY)

    assert days(tmp_path, "_seals") == [14]


def test_a_head_that_was_set_aside_goes_with_the_seal_of_its_journal(tmp_path: Path) -> None:
    """Else its journal would be missing for ever once its date is removed."""
    storage, rows = (
        LocalStorage(tmp_path),
        to_table([delivered([1], time=noon(TODAY), gateway="edge")])[0],
    )
    for number, day in enumerate((TODAY - 4 * DAY, TODAY)):
        name = str(JournalName("edge", noon(day), number))
        closed = noon(day) + HOUR
        write_sealed(storage, name, rows, gateway="edge", opened=noon(day), closed=closed)
    heads = [
        WriterHead("edge", "edge", noon(day), None, str(JournalName("edge", noon(day), number)))
        for number, day in enumerate((TODAY - 4 * DAY, TODAY))
    ]
    for head in heads:
        path = tmp_path / HEADS / f"edge-{head.at}.earlier"
        path.write_bytes(head.signed(None).to_json())

    remove_days(storage, TODAY - 2 * DAY)

    assert [each.name for each in (tmp_path / HEADS).glob("*.earlier")] == [
        f"edge-{noon(TODAY)}.earlier"
    ]


@pytest.mark.parametrize("storage", [local, remote])
def test_the_chain_begins_with_the_first_kept_day(
    tmp_path: Path, storage: Callable[[Path], Storage]
) -> None:
    files, midnight = storage(tmp_path), noon(TODAY - 4 * DAY) - 12 * HOUR
    previous: Previous | None = None
    for number in range(4):
        at = midnight + number * 24 * HOUR
        table, _ = to_table([delivered([1], time=at + HOUR, gateway="edge")])
        name = str(JournalName("edge", midnight, number))
        end = End.STOPPED if number == 3 else End.CLOSED
        closed = at + 24 * HOUR + 5
        seal = write_sealed(
            files, name, table, gateway="edge", previous=previous, opened=at, closed=closed, end=end
        )
        previous = seal.link

    remove_days(files, TODAY - 2 * DAY)

    assert days(tmp_path, "_seals") == [12, 13, 14]
    assert days(tmp_path, ".") == [12, 13]
    for day in (TODAY - 2 * DAY, TODAY - DAY):
        found = verify_day(files, day, today=TODAY + DAY)
        assert found.complete
    assert {each.rule for each in verify_archive(files, today=TODAY + DAY).findings} == {
        "chain-begins"
    }


def test_the_converter_removes_old_days_only_with_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recent = datetime.now(UTC) - timedelta(hours=1)
    archive(tmp_path, delivered([1], time=1_000_000), start=1)
    archive(tmp_path, delivered([2], time=int(recent.timestamp()) * 1_000_000), start=2)

    assert convert([str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("date=*"))) == 2
    assert convert([str(tmp_path), "--keep-days", "7"]) == 0

    assert [path.name for path in tmp_path.glob("date=*")] == [f"date={recent:%Y-%m-%d}"]
    assert "1970-01-01 is removed, as the archive keeps 7 days" in capsys.readouterr().err


def test_the_command_forget_needs_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    today = datetime.now(UTC).date()
    filled(tmp_path / "archive", today)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "absent"))
    monkeypatch.setenv("PATH", "")

    assert main(["archive", "forget", str(tmp_path / "archive"), "--keep-days", "2"]) == 0

    out = capsys.readouterr().out
    assert f"{today - 3 * DAY} is removed\n1 dates were removed, 3 files of " in out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param(["{}/none", "--keep-days", "3"], "is not a folder", id="absent"),
        pytest.param(["{}", "--keep-days", "0"], "--keep-days 0: is not 1 or more", id="no-days"),
        pytest.param(
            ["hdfs://127.0.0.1:1/x", "--keep-days", "3"], "old days were not removed: ", id="away"
        ),
        pytest.param(["s3://b/x?colour=red", "--keep-days", "3"], "unknown option", id="option"),
    ],
)
def test_the_command_forget_reports_an_error_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert main(["archive", "forget", *(word.format(tmp_path) for word in arguments)]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


def test_the_command_forget_needs_the_key_of_a_keyed_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement without it would prove nothing: the chains would begin with missing journals."""
    monkeypatch.delenv("GATEWAY_SEAL_KEY", raising=False)
    (tmp_path / "key").write_bytes(KEY)
    made = chained(tmp_path / "archive", KEY).day(["east"])
    head = WriterHead("east", "east", made.seals[-1].closed, made.seals[-1].link, None)
    made.storage.put(head_path("east"), head.signed(KEY).to_json())
    command = ["archive", "forget", str(tmp_path / "archive"), "--keep-days", "1"]

    assert main(command) == 2
    assert "the seals of this archive are keyed" in capsys.readouterr().err
    assert main([*command, "--seal-key", str(tmp_path / "key")]) == 0

    assert verify_archive(made.storage, KEY).findings == ()


@pytest.mark.parametrize(("age", "kept"), [(8, True), (9, False)])
def test_a_date_that_waits_for_copies_is_kept_until_a_night_finds_them_too_old(
    tmp_path: Path, age: int, kept: bool
) -> None:
    waiting = TODAY - age * DAY
    night = night_of(DateRecord(str(waiting), "", 0, 0, 1, settled=False))

    found = oldest_needed(LocalStorage(tmp_path), night, TODAY, TODAY)

    assert found == (waiting if kept else None)


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "seal-removed"])
@pytest.mark.parametrize("age", [8, 9])
def test_rows_that_no_night_judged_are_kept_as_long_and_then_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: int, *, sealed: bool
) -> None:
    monkeypatch.setattr(retention, "today", lambda: TODAY)
    day, storage = TODAY - age * DAY, LocalStorage(tmp_path)
    row = received([1], time=noon(day))
    rows, _ = to_table([replace(row, common={**row.common, "gateway": "edge"})])
    stem = str(JournalName("edge", START, 7))
    seal = write_sealed(storage, stem, sort_rows(rows), gateway="edge", end=End.STOPPED)
    if not sealed:
        storage.delete(seal_path(seal))
    seen = Seen("edge", START, 6)
    storage.put(NIGHTS / "3.json", replace(night_of(), seen=(seen,)).signed(None).to_json())

    remove_days(storage, TODAY - 2 * DAY)

    if age == 8:
        assert days(tmp_path, "") == [day.day]
        assert forgotten_dates(storage) == {}
    else:
        assert days(tmp_path, "") == []
        assert forgotten_dates(storage) == {NIGHTS / f"forgotten-{day}.json": (str(day),)}

    storage.put(NIGHTS / "4.json", replace(night_of(), seen=(Seen("edge", START, 7),)).to_json())
    remove_days(storage, TODAY - 2 * DAY)
    assert days(tmp_path, "") == []


def test_a_removal_that_was_interrupted_states_all_its_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "today", lambda: TODAY)
    day, storage = TODAY - 9 * DAY, LocalStorage(tmp_path)
    storage.put(NIGHTS / "3.json", night_of().signed(None).to_json())
    for number, receipt in enumerate((day - DAY, day)):
        row = delivered([1], time=noon(day), received=noon(receipt), gateway="edge")
        rows, _ = to_table([row])
        name = str(JournalName("edge", START, number))
        write_sealed(storage, name, rows, gateway="edge", closed=noon(day))

    rmtree = shutil.rmtree

    def interrupted(folder: Path) -> None:
        if folder.parent.name != "_seals":
            rmtree(folder)
            return
        min(folder.iterdir()).unlink()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(OSError, match="Input/output"):
            remove_days(storage, TODAY - 2 * DAY)
    remove_days(storage, TODAY - 2 * DAY)

    stated = forgotten_dates(storage)
    assert stated == {NIGHTS / f"forgotten-{day}.json": (str(day - DAY), str(day))}


def night_of(*dates: DateRecord) -> Night:
    return Night(n=3, previous="", at=noon(TODAY), until=str(TODAY), spooled_days=7, dates=dates)
