"""The archive as a night finds it, without Spark."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.archive.heads import head_path
from gateway.archive.layout import HOUR, SEALS, JournalName, day_folder, day_start
from gateway.archive.night_record import NO_NIGHT
from gateway.archive.retired import retire
from gateway.archive.seals.seal import End, Seal
from gateway.archive.seals.store import read_seal, write_seal
from gateway.archive.storage import LocalStorage
from gateway.archive.verification.seal_evidence import Period
from gateway.reconcile.input.inputs import find_inputs
from gateway.reconcile.job import Job
from gateway.reconcile.nights.world import World, world_of
from tests.archive.samples import DAY, NOON, START, archive, delivered, received

ONE_DAY = timedelta(days=1)
DATES = [DAY + each * ONE_DAY for each in (-1, 0, 1)]
_OPENED: list[str] = []
_COUNTING = {"on": False}


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _COUNTING["on"]:
        _OPENED.append(str(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def hook() -> None:
    sys.addaudithook(_count)  # stays for the life of the process


@contextmanager
def opened() -> Iterator[list[str]]:
    """The paths that this process opens."""
    _OPENED.clear()
    _COUNTING["on"] = True
    yield _OPENED
    _COUNTING["on"] = False


def world(root: Path) -> World:
    read = partial(read_seal, LocalStorage(root))
    return world_of(Job(root, DAY), NO_NIGHT, NOON, frozenset(), read)


def test_a_night_reads_each_seal_once(tmp_path: Path) -> None:
    for number in range(3):
        archive(tmp_path, received([number]), delivered([number]), start=START + number)
    read = partial(read_seal, LocalStorage(tmp_path))
    job = Job(tmp_path, DAY, read_seal=lru_cache(9)(read))
    assert job.read_seal is not None

    with opened() as paths:
        found = world_of(job, NO_NIGHT, NOON, frozenset(), job.read_seal)
        find_inputs(job.location, DAY, read=job.read_seal)

    seals = Counter(path for path in paths if f"/{SEALS}/date=" in path and path.endswith(".json"))
    assert len(found.journals) == len(seals) == 3
    assert set(seals.values()) == {1}


def test_a_retired_writer_whose_head_is_gone_is_expected_again(tmp_path: Path) -> None:
    archive(tmp_path, received([1]), delivered([1]))
    (writer,) = {each.writer for each in world(tmp_path).heads}
    retire(LocalStorage(tmp_path), writer, "sold", NOON, None)
    assert world(tmp_path).retired == {writer}

    (tmp_path / head_path(writer)).unlink()

    assert not world(tmp_path).retired


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
        (journal,) = world(root).journals

    for day in DATES:
        period = Period(day_start(day), day_start(day + ONE_DAY), NOON)
        if period.has(seal.opened, seal.closed):
            assert str(day) in journal.concerns


def sealed(opened: int, closed: int, end: End) -> Seal:
    stem = str(JournalName("edge", START, 1))
    return Seal("edge", "edge", stem, START, 1, opened, closed, None, "d", end, 0, 0)
