"""The archive as a night finds it, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.archive.heads import head_path
from gateway.archive.layout import DAY as DAY_LENGTH
from gateway.archive.layout import (
    HEADS,
    HOUR,
    SEALS,
    SECOND,
    JournalName,
    day_folder,
    day_start,
    parse_journal_name,
)
from gateway.archive.signed_json import TAKEN, Previous
from gateway.archive.storage import LocalStorage
from gateway.night.archive.night_record import NO_NIGHT, Night
from gateway.night.archive.open_archive import OpenArchive, open_archive
from gateway.night.archive.retired import retire
from gateway.night.archive.seals.seal import End, Seal
from gateway.night.archive.seals.store import seal_path, write_seal
from gateway.night.archive.verification.seal_evidence import Period
from gateway.night.reconcile.input.inputs import find_inputs
from gateway.night.reconcile.nights.archive_state import ArchiveState, archive_state
from gateway.night.reconcile.nights.plan import plan_night
from tests.archive.samples import DAY, NOON, START, archive, delivered, received
from tests.night.archive.verification.chained import Chained, errors
from tests.opened_files import opened_files

ONE_DAY = timedelta(days=1)
DATES = [DAY + each * ONE_DAY for each in (-1, 0, 1)]


def state(root: Path, previous: Night = NO_NIGHT) -> ArchiveState:
    return world_in(open_archive(root), previous)


def world_in(archive: OpenArchive, previous: Night = NO_NIGHT) -> ArchiveState:
    return archive_state(archive, previous, at=NOON, in_flight=120 * SECOND)


def test_a_head_that_was_set_aside_is_not_that_of_its_writer(tmp_path: Path) -> None:
    archive(tmp_path, received([1]), delivered([1]))
    (head,) = state(tmp_path).heads
    name = parse_journal_name(head.closed.journal if head.closed else "")
    assert name is not None
    content = (tmp_path / head_path(head.writer)).read_bytes()
    (tmp_path / HEADS / f"{head.writer}-{name.start}.earlier").write_bytes(content)

    assert state(tmp_path).heads == [head]


def test_a_night_reads_each_seal_once(tmp_path: Path) -> None:
    for number in range(3):
        archive(tmp_path, received([number]), delivered([number]), start=START + number)
    once = open_archive(tmp_path).reading_once()

    with opened_files() as paths:
        found = world_in(once)
        find_inputs(once, DAY)

    seals = Counter(path for path in paths if f"/{SEALS}/date=" in path and path.endswith(".json"))
    assert len(found.journals) == len(seals) == 3
    assert set(seals.values()) == {1}


def test_the_numbers_of_an_earlier_chain_stand_for_no_journal_of_the_newest_one(
    tmp_path: Path,
) -> None:
    """A seal of the second chain vanishes, and the first chain has a journal of this number."""
    made, later = Chained(LocalStorage(tmp_path)), START + 9 * SECOND
    for number in range(3):
        made.add("edge", NOON + number * SECOND, NOON + (number + 1) * SECOND)
    made.links.clear()
    for number in range(3, 6):
        made.add("edge", NOON + number * SECOND, NOON + (number + 1) * SECOND, start=later)
    night = plan_night(NO_NIGHT, state(tmp_path), at=NOON, spooled_days=7)
    assert [(each.start, each.number) for each in night.seen] == [(START, 2), (later, 2)]
    assert night.findings == ()

    (tmp_path / seal_path(made.seals[4])).unlink()

    (found,) = plan_night(night, state(tmp_path, night), at=NOON, spooled_days=7).findings
    assert (found.rule, found.place) == ("missing-journal", f"_seals/edge-{later}-000001.json")


def test_a_retired_writer_whose_head_is_gone_is_expected_again(tmp_path: Path) -> None:
    archive(tmp_path, received([1]), delivered([1]))
    (writer,) = {each.writer for each in state(tmp_path).heads}
    retire(LocalStorage(tmp_path), writer, "sold", NOON, None)
    assert state(tmp_path).retired == {writer}

    (tmp_path / head_path(writer)).unlink()

    assert not state(tmp_path).retired


@given(st.integers(-3 * HOUR, 3 * HOUR), st.integers(0, 3 * HOUR), st.booleans())
def test_a_night_judges_each_date_again_that_a_finding_about_a_journal_may_concern(
    offset: int, length: int, killed: bool
) -> None:
    """Else a date keeps the finding about a journal that is there since."""
    opened = day_start(DAY) + offset
    seal = sealed(opened, opened + length, End.KILLED if killed else End.CLOSED)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for day in DATES:
            day_folder(root, day).mkdir()
        write_seal(LocalStorage(root), seal)
        (journal,) = state(root).journals

    for day in DATES:
        period = Period(day_start(day), day_start(day + ONE_DAY), NOON)
        if period.has(seal.opened, seal.closed):
            assert str(day) in journal.concerns


@pytest.mark.parametrize("lost", [[1], [1, 2]], ids=["one", "several"])
def test_a_night_judges_each_date_again_that_a_lost_journal_concerned(
    tmp_path: Path, lost: list[int]
) -> None:
    """The dates that have the finding are judged with it, and again when the journals are there."""
    made = Chained(LocalStorage(tmp_path))
    dates = [DAY + each * ONE_DAY for each in range(6)]
    for day in dates:
        day_folder(tmp_path, day).mkdir()
    made.add("edge", NOON, NOON + HOUR, end=End.STOPPED)
    for number in (1, 2, 3):
        begin = NOON + number * 24 * HOUR
        made.add("edge", begin, begin + HOUR, end=End.STOPPED, start=begin)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for number in lost:
        (tmp_path / seal_path(made.seals[number])).unlink()

    wrong = {str(day) for day in dates if "missing-seal" in errors(made.verify(day))}
    names_it = seal_path(made.seals[lost[-1] + 1])
    (tmp_path / names_it).unlink()
    _, night = judged(tmp_path, NO_NIGHT)
    put_back(tmp_path / names_it, files)
    found, night = judged(tmp_path, night)
    assert wrong
    assert wrong <= found

    for number in lost:
        put_back(tmp_path / seal_path(made.seals[number]), files)
    assert wrong <= judged(tmp_path, night)[0]


def test_a_night_judges_each_date_again_that_all_journals_before_a_first_seal_concerned(
    tmp_path: Path,
) -> None:
    """An older copy of the archive was put back: its gateway had gone on for days."""
    made = Chained(LocalStorage(tmp_path))
    dates = [DAY + each * ONE_DAY for each in range(6)]
    for day in dates:
        day_folder(tmp_path, day).mkdir()
    for number in range(4):
        begin = NOON + number * 24 * HOUR
        made.add("edge", begin, begin + 24 * HOUR, start=NOON)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for seal in made.seals:
        (tmp_path / seal_path(seal)).unlink()
    _, night = judged(tmp_path, NO_NIGHT)

    put_back(tmp_path / seal_path(made.seals[3]), files)

    wrong = {str(day) for day in dates if "missing-seal" in errors(made.verify(day))}
    found, night = judged(tmp_path, night)
    assert wrong == {str(DAY + each * ONE_DAY) for each in range(4)}
    assert wrong <= found
    for seal in made.seals[:3]:
        put_back(tmp_path / seal_path(seal), files)
    assert wrong <= judged(tmp_path, night)[0]


@pytest.mark.parametrize("end", [End.CLOSED, End.KILLED, End.STOPPED])
def test_a_start_is_evidence_of_the_date_on_which_the_process_before_it_ended(
    tmp_path: Path, end: End
) -> None:
    """Until then nothing told how that went on, unless it stopped: it is judged again."""
    made = Chained(LocalStorage(tmp_path))
    for day in DATES:
        day_folder(tmp_path, day).mkdir()
    made.add("edge", NOON, NOON + HOUR, end=end)
    before, night = judged(tmp_path, NO_NIGHT)
    begin = NOON + 24 * HOUR
    made.add("edge", begin, begin + HOUR, end=End.STOPPED, start=begin)

    found, _ = judged(tmp_path, night)

    assert str(DAY) in before
    assert (str(DAY) in found) == (end is not End.STOPPED)


def test_a_stop_that_arrives_late_is_evidence_of_the_silence_after_it(tmp_path: Path) -> None:
    """Its bucket was away: the dates since then had a writer whose end nobody knew."""
    made = Chained(LocalStorage(tmp_path))
    for day in DATES:
        day_folder(tmp_path, day).mkdir()
    made.add("edge", day_start(DATES[0]), day_start(DATES[0]) + HOUR)
    _, night = judged(tmp_path, NO_NIGHT)
    late = day_start(DATES[0]) + HOUR
    made.add("edge", late, late + HOUR, end=End.STOPPED)

    found, _ = judged(tmp_path, night)

    assert str(DATES[1]) in found


@pytest.mark.parametrize("linked", [True, False])
def test_a_night_judges_each_date_again_that_a_new_machine_may_concern(
    tmp_path: Path, *, linked: bool
) -> None:
    """The last journal of the machine before it was closed just after midnight."""
    made = Chained(LocalStorage(tmp_path))
    for day in DATES:
        day_folder(tmp_path, day).mkdir()
    midnight = day_start(DAY)
    made.add("edge", midnight - 9 * HOUR, midnight + SECOND)
    _, night = judged(tmp_path, NO_NIGHT)
    if linked:
        lost = JournalName("edge", START, 1)
        made.links["edge"] = Previous(str(lost), TAKEN, midnight + SECOND)
    else:
        del made.links["edge"]
    made.add("edge", NOON, NOON + HOUR, end=End.STOPPED, start=NOON)

    wrong = {str(day) for day in DATES if errors(made.verify(day))}
    assert wrong == {str(day) for day in DATES[:2]}
    assert wrong <= judged(tmp_path, night)[0]


def judged(root: Path, previous: Night) -> tuple[set[str], Night]:
    """The dates that the night after `previous` judges, and its link."""
    found = state(root, previous)
    night = plan_night(previous, found, at=NOON + 9 * DAY_LENGTH, spooled_days=7)
    return {day for each in found.journals for day in each.concerns}, replace(night, n=1)


def put_back(path: Path, files: Mapping[Path, bytes]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(files[path])


def sealed(opened: int, closed: int, end: End) -> Seal:
    stem = str(JournalName("edge", START, 1))
    return Seal("edge", "edge", stem, START, 1, opened, closed, None, "d", end, 0, 0)
