"""The writers that heads and archived routes name, and whose part of the archive is absent."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.archive.heads import WriterHead, head_path, read_head, write_head
from gateway.archive.journal.local_head import number_of
from gateway.archive.layout import HOUR, JournalName, journal_folder
from gateway.archive.routes import write_routes
from gateway.archive.signed_json import Previous, Term
from gateway.archive.storage import LocalStorage, RemoteStorage
from gateway.night.archive.removed import state_removal
from gateway.night.archive.retired import retire
from gateway.night.archive.seals.seal import End
from gateway.night.archive.verification.verify import verify_archive, verify_day
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY, NOON, START
from tests.night.archive.verification.chained import (
    KEY,
    MIDNIGHT,
    SECOND,
    Chained,
    errors,
    file_of,
    sealed_day,
    segment_of,
    warnings,
)

KEYS = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
DATES = [DAY + timedelta(days=number) for number in range(5)]


def silent_after_noon(made: Chained) -> Chained:
    """East closes nothing after noon of the first date and never stops; west goes on for days."""
    made.add("east", MIDNIGHT - HOUR, MIDNIGHT + SECOND)
    made.add("east", MIDNIGHT + SECOND, NOON)
    begin = MIDNIGHT - HOUR
    for number in range(len(DATES) + 1):
        end = MIDNIGHT + number * 24 * HOUR + SECOND
        made.add("west", begin, end)
        begin = end
    return made


@KEYS
def test_a_silent_writer_is_an_error_on_every_date(tmp_path: Path, key: bytes | None) -> None:
    made = silent_after_noon(Chained(LocalStorage(tmp_path), key))

    assert [errors(made.verify(day)) for day in DATES] == [["open-chain"]] * 5

    retire(made.storage, "east", "its host is gone", NOON, key)
    found = [made.verify(day) for day in DATES]
    assert [errors(each) for each in found] == [["open-chain"], [], [], [], []]
    text = "after 2026-03-14 12:00:00 UTC (retired: its host is gone)"
    assert found[0].findings[-1].text == f"nothing proves the rows of east {text}"


def test_a_silent_writer_in_a_bucket_is_an_error_on_every_date(bucket: Bucket) -> None:
    bucket.start()
    made = silent_after_noon(Chained(RemoteStorage(bucket.url), KEY))

    assert [errors(made.verify(day)) for day in DATES] == [["open-chain"]] * 5


def test_a_writer_that_comes_back_is_an_error_until_its_journals_are_there(tmp_path: Path) -> None:
    made = silent_after_noon(Chained(LocalStorage(tmp_path)))
    late = [
        made.add("east", NOON + number * 24 * HOUR, NOON + (number + 1) * 24 * HOUR)
        for number in range(5)
    ]
    assert [errors(made.verify(day)) for day in DATES] == [[]] * 5

    for seal in late[1:3]:
        (tmp_path / "_seals").glob(f"*/{seal.journal}.json").__next__().unlink()
    assert "missing-seal" in errors(made.verify(DATES[2]))


def test_a_head_that_comes_back_after_its_dates_were_removed_concerns_no_kept_date(
    tmp_path: Path,
) -> None:
    """A later process had begun before these dates: the first kept seal names its journal."""
    made = Chained(LocalStorage(tmp_path))
    old, later = MIDNIGHT - 90 * HOUR, MIDNIGHT - 60 * HOUR
    before = Previous(str(JournalName("east", later, 6)), "d" * 64, MIDNIGHT - 30 * HOUR)
    made.add("east", MIDNIGHT, NOON, start=MIDNIGHT, previous=before, end=End.STOPPED)
    state_removal(made.storage, DAY, [JournalName("east", later, 6)], None)
    head = WriterHead("east", "east", old, None, str(JournalName("east", old, 0)))
    path = tmp_path / head_path("east").with_name(f"east-{old}.earlier")
    path.write_bytes(head.signed(None).to_json())

    assert errors(made.verify()) == []


@pytest.mark.parametrize("taken", [5, 6])
def test_a_head_that_comes_back_after_its_journal_was_removed_misses_nothing(
    tmp_path: Path, taken: int
) -> None:
    """A machine uploads its head again, and the next process began on a date that is kept."""
    made = Chained(LocalStorage(tmp_path))
    old = MIDNIGHT - 90 * HOUR
    last = JournalName("east", old, 6)
    before = Previous(str(last), None, MIDNIGHT - 30 * HOUR)
    made.add("east", NOON, NOON + HOUR, start=NOON, previous=before, end=End.STOPPED)
    state_removal(made.storage, DAY, [last._replace(number=taken)], None)
    head = WriterHead("east", "east", old, None, str(last))
    path = tmp_path / head_path("east").with_name(f"east-{old}.earlier")
    path.write_bytes(head.signed(None).to_json())

    assert ("missing-journal" in errors(made.verify())) == (taken < last.number)


def test_a_writer_that_starts_after_days_leaves_the_dates_between_as_they_are(
    tmp_path: Path,
) -> None:
    """The head names the killed journal as the one before; only what follows is not proven."""
    made = Chained(LocalStorage(tmp_path))
    last = made.add("east", MIDNIGHT, NOON, end=End.KILLED)
    begin = MIDNIGHT + 60 * HOUR
    stem = str(JournalName("east", begin, number_of(last.link) + 1))
    write_head(tmp_path, WriterHead("east", "east", begin, closed=last.link, open=stem))
    for number in range(1, 5):
        made.add("west", MIDNIGHT + number * 24 * HOUR, MIDNIGHT + number * 24 * HOUR + HOUR)

    found = [errors(made.verify(day)) for day in DATES[:4]]

    assert ["open-chain" in each for each in found] == [False, False, True, True]
    retire(made.storage, "east", "its host is gone", begin + HOUR, None)
    assert ["open-chain" in errors(made.verify(day)) for day in DATES[:2]] == [False, False]


def remove_all_but_routes(root: Path) -> None:
    for path in [*root.rglob("east-*.parquet"), *root.glob("_seals/*/east-*")]:
        path.unlink()
    (root / head_path("east")).unlink()


@KEYS
def test_the_archived_routes_of_a_writer_are_a_witness_for_it(
    tmp_path: Path, key: bytes | None
) -> None:
    made = sealed_day(tmp_path, key)
    write_routes(tmp_path, "east", [], MIDNIGHT, key)
    assert errors(made.verify()) == []

    remove_all_but_routes(tmp_path)

    assert errors(made.verify()) == ["missing-head"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda path: path.write_bytes(path.read_bytes().replace(b"1", b"2", 1)), id="byte"
        ),
        pytest.param(lambda path: path.write_bytes(b""), id="emptied"),
        pytest.param(lambda path: path.unlink(), id="removed"),
    ],
)
@KEYS
def test_a_changed_head_is_an_error(
    tmp_path: Path, key: bytes | None, change: Callable[[Path], object]
) -> None:
    made = sealed_day(tmp_path, key)
    change(tmp_path / head_path("west"))

    assert errors(made.verify()) in (["forged-head"], ["missing-head"])


def test_an_older_head_is_an_error(tmp_path: Path) -> None:
    made = sealed_day(tmp_path)
    head = read_head(tmp_path, "east").head
    assert head is not None
    third = made.seals[2]
    write_head(tmp_path, replace(head, at=third.closed, closed=third.link, open=None))

    assert errors(made.verify()) == ["old-head"]


@pytest.mark.parametrize("retired", [False, True])
@pytest.mark.parametrize("stopped", [False, True])
@KEYS
def test_an_older_head_is_an_error_of_each_date_since_its_time(
    tmp_path: Path, key: bytes | None, *, stopped: bool, retired: bool
) -> None:
    """East is silent after the second date, and an older head that states a stop hides that."""
    made = silent_after_noon(Chained(LocalStorage(tmp_path), key))
    begin = MIDNIGHT + 24 * HOUR
    made.add("east", NOON, begin, end=End.STOPPED if stopped else End.CLOSED)
    path = tmp_path / head_path("east")
    content = path.read_bytes()
    for opened in (begin, begin + HOUR):
        made.add("east", opened, opened + HOUR, start=begin if stopped else START)
    path.write_bytes(content)
    if retired:
        retire(made.storage, "east", "its host is gone", begin + HOUR, key)

    found = [made.verify(day) for day in DATES]

    assert ["old-head" in errors(each) for each in found] == [True] * 5


def test_an_older_head_from_before_journals_without_a_seal_is_found_by_the_nights_only(
    tmp_path: Path,
) -> None:
    """Nothing in the archive names these journals any more but the record of the last night."""
    made = silent_after_noon(Chained(LocalStorage(tmp_path)))
    last = made.add("east", NOON, NOON + HOUR, end=End.STOPPED)
    path = tmp_path / head_path("east")
    content = path.read_bytes()
    stem = str(JournalName("east", NOON + 24 * HOUR, number_of(last.link) + 1))
    write_head(tmp_path, WriterHead("east", "east", NOON + 24 * HOUR, closed=last.link, open=stem))
    assert [errors(made.verify(day)) for day in DATES] == [[], *[["open-chain"]] * 4]

    path.write_bytes(content)

    assert [errors(made.verify(day)) for day in DATES] == [[]] * 5


def test_the_head_of_another_instance_is_an_error(tmp_path: Path) -> None:
    made = Chained(LocalStorage(tmp_path), KEY)
    for number, instance in enumerate("ab"):
        begin = MIDNIGHT + number * 12 * HOUR
        term = Term(number + 1, begin, 10)
        made.add("plant", begin, begin + 12 * HOUR, end=End.STOPPED, instance=instance, lease=term)
    assert errors(made.verify()) == []

    shutil.copy(tmp_path / head_path("plant@a"), tmp_path / head_path("plant@b"))

    assert errors(made.verify()) == ["forged-head"]


def test_a_start_after_the_stop_that_the_head_states_is_an_error(tmp_path: Path) -> None:
    """An older head was put back, and the journals since then are gone: the routes remain."""
    made = sealed_day(tmp_path)
    write_routes(tmp_path, "east", [], MIDNIGHT + 31 * HOUR)

    assert errors(made.verify(DAY + timedelta(days=1))) == ["old-head"]
    assert errors(made.verify()) == []


@pytest.mark.parametrize("end", [End.STOPPED, None], ids=["after-a-stop", "first"])
def test_a_process_without_a_seal_is_an_error_where_its_journals_are_out_of_reach(
    tmp_path: Path, end: End | None
) -> None:
    """A head that reached a bucket names a journal whose disk was lost, or that is to come."""
    made, start = sealed_day(tmp_path), MIDNIGHT + 31 * HOUR
    writer = "north" if end is None else "east"
    closed = made.links.get(writer)
    stem = str(JournalName(writer, start, number_of(closed) + 1))
    write_head(tmp_path, WriterHead(writer, writer, start, closed=closed, open=stem))
    dates = DATES[:3]

    assert [errors(made.verify(day)) for day in dates[:2]] == [[], ["open-chain"]]
    assert errors(verify_archive(made.storage, today=dates[2])) == ["open-chain"]
    found = verify_day(made.storage, dates[1], today=dates[1])
    assert (errors(found), warnings(found)) == ([], ["open-chain"])

    made.add(writer, start, start + HOUR, end=End.STOPPED, start=start)
    assert [errors(made.verify(day)) for day in dates[:2]] == [[], []]


def test_a_journal_that_a_later_start_opened_leaves_the_date_of_the_stop_alone(
    tmp_path: Path,
) -> None:
    made, start = sealed_day(tmp_path), MIDNIGHT + 60 * HOUR
    closed = made.links["east"]
    journal_folder(tmp_path).mkdir()
    stem = str(JournalName("east", start, number_of(closed) + 1))
    write_head(tmp_path, WriterHead("east", "east", start, closed=closed, open=stem))

    found = [errors(made.verify(day, tmp_path)) for day in DATES[:3]]

    assert found == [[], [], ["missing-journal"]]


@pytest.mark.parametrize("back", [False, True])
def test_a_lost_journal_of_a_killed_process_is_an_error_until_the_next_one_began(
    tmp_path: Path, *, back: bool
) -> None:
    """Its head names the journal as open, and after the next start as the one before that."""
    made, start, again = sealed_day(tmp_path), MIDNIGHT + 60 * HOUR, MIDNIGHT + 100 * HOUR
    folder = journal_folder(tmp_path)
    folder.mkdir()
    number = number_of(made.links["east"]) + 1
    lost = str(JournalName("east", start, number))
    head = WriterHead("east", "east", start, closed=made.links["east"], open=lost)
    if back:
        stem = str(JournalName("east", again, number + 1))
        (folder / f"{stem}.open").write_bytes(b"a journal that waits")
        head = replace(head, at=again, closed=Previous(lost, None, start), open=stem)
    write_head(tmp_path, head)

    found = [errors(made.verify(day, tmp_path)) for day in DATES[:4]]

    rule = "missing-seal" if back else "missing-journal"
    assert found == [[], [], [rule], [rule]]


def test_the_journal_of_a_process_without_a_seal_is_an_error_on_each_date_since_its_start(
    tmp_path: Path,
) -> None:
    """Its rows of the evening are missing, although it was closed at six in the morning."""
    made, start = sealed_day(tmp_path), MIDNIGHT + 46 * HOUR
    last = made.add("east", start, start + 8 * HOUR, end=End.STOPPED, start=start)
    for path in (file_of(tmp_path, last), segment_of(tmp_path, last)):
        path.unlink()

    assert [errors(made.verify(day)) for day in DATES[:3]] == [
        [], ["missing-seal"], ["missing-seal"],
    ]  # fmt: skip


@pytest.mark.parametrize("end", [End.STOPPED, End.KILLED])
def test_the_last_journal_of_a_head_without_its_seal_is_an_error(tmp_path: Path, end: End) -> None:
    """The head reached a bucket before the seal, and the disk with the journal was lost."""
    made, start = sealed_day(tmp_path), MIDNIGHT + 31 * HOUR
    last = made.add("east", start, start + HOUR, end=end, start=start)
    if end is End.KILLED:
        head = WriterHead("east", "east", start, closed=last.link, open=last.journal)
        write_head(tmp_path, head)
    for path in [file_of(tmp_path, last), segment_of(tmp_path, last)]:
        path.unlink()

    assert [errors(made.verify(day)) for day in DATES[:2]] == [[], ["missing-seal"]]


@pytest.mark.parametrize("retired", [False, True])
def test_a_journal_that_only_a_head_names_is_an_error_of_later_dates_until_its_writer_is_retired(
    tmp_path: Path, *, retired: bool
) -> None:
    made = sealed_day(tmp_path)
    stem = str(JournalName("north", START, 0))
    journal_folder(tmp_path).mkdir()
    write_head(tmp_path, WriterHead("north", "north", NOON, open=stem))
    if retired:
        retire(made.storage, "north", "its disk is broken", NOON, None)

    found = [made.verify(day, tmp_path) for day in DATES[:2]]

    later = [] if retired else ["missing-journal"]
    assert [errors(each) for each in found] == [["missing-journal"], later]
    assert ("retired: its disk is broken" in str(found[0].findings)) is retired


def test_a_copy_of_the_journals_folder_elsewhere_concerns_its_own_writers_only(
    tmp_path: Path,
) -> None:
    """A night on the host of one gateway reaches the journals of that gateway only."""
    made = Chained(LocalStorage(tmp_path / "archive"))
    made.day()
    buffer = tmp_path / "buffer"
    (buffer / "_heads").mkdir(parents=True)
    shutil.copy(tmp_path / "archive" / head_path("east"), buffer / "_heads")
    made.add("west", MIDNIGHT + 31 * HOUR, MIDNIGHT + 32 * HOUR, end=End.CLOSED)

    assert errors(made.verify(DAY + timedelta(days=1), journals=buffer)) == ["open-chain"]


def test_a_head_that_was_set_aside_concerns_no_date_after_the_next_process_began(
    tmp_path: Path,
) -> None:
    """A date of a still later process knows that one by the names of its seals only."""
    made, begin = Chained(LocalStorage(tmp_path)), MIDNIGHT - 50 * HOUR
    first = made.add("east", begin, begin + HOUR, start=begin)
    lost = WriterHead("east", "east", begin, first.link, str(JournalName("east", begin, 1)))
    path = tmp_path / head_path("east").with_name(f"east-{begin}.earlier")
    path.write_bytes(lost.signed(None).to_json())
    made.add("west", NOON, NOON + 24 * HOUR, end=End.STOPPED)
    for later in (MIDNIGHT - 30 * HOUR, MIDNIGHT + 50 * HOUR):
        made.links["east"] = replace(made.links["east"], digest=None)
        made.add("east", later, later + HOUR, start=later, end=End.STOPPED)

    found = [errors(made.verify(DAY + timedelta(days=number))) for number in (-2, 2)]
    assert ["missing-journal" in each for each in found] == [True, False]


def test_a_head_that_was_set_aside_concerns_no_date_before_its_process_began(
    tmp_path: Path,
) -> None:
    """It names the journal of the process before, which has a seal."""
    made, begin = Chained(LocalStorage(tmp_path)), MIDNIGHT + 50 * HOUR
    first = made.add("east", MIDNIGHT, MIDNIGHT + HOUR, end=End.KILLED)
    lost = WriterHead("east", "east", begin, first.link, str(JournalName("east", begin, 1)))
    path = tmp_path / head_path("east").with_name(f"east-{begin}.earlier")
    path.write_bytes(lost.signed(None).to_json())
    made.add("east", begin + 20 * HOUR, begin + 21 * HOUR, start=begin + 20 * HOUR)

    found = [errors(made.verify(day)) for day in DATES[:3]]

    assert ["missing-journal" in each for each in found] == [False, False, True]
