"""The driver of nights: what it does before it judges a date."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from gateway.archive.seal_key import SealKey
from gateway.archive.storage import LocalStorage
from gateway.night.archive.open_archive import open_archive
from gateway.night.archive.seals.seal import Seal
from gateway.night.archive.seals.store import read_seals, seal_days
from gateway.night.archive.segments.convert import convert_abandoned
from gateway.night.reconcile.job import Job
from gateway.night.reconcile.nights.run import run_dates
from tests.archive.samples import DAY, QUICK, START, delivered, put, received
from tests.archived import segments
from tests.opened_files import opened_files

KEY = b"a key of the seals"


def left_by_a_slow_stop(root: Path, key: bytes | None) -> None:
    options = replace(QUICK, close_seconds=0, seal_key=key)  # its converter is ended at once
    writer = ArchiveWriter(root, "edge", START, options)
    put(writer, received([1]))
    put(writer, delivered([1]))
    writer.close()
    assert journals(root)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
def test_journals_that_a_slow_stop_left_are_converted_first(
    tmp_path: Path, key: bytes | None
) -> None:
    left_by_a_slow_stop(tmp_path, key)
    job = Job(master="local[1]")

    report = run_dates(open_archive(tmp_path, key), job, [DAY], lambda _text, _share=None: None)

    assert journals(tmp_path) == []
    assert (report.total("delivered"), report.findings) == (1, [])


def test_a_night_opens_a_journal_once(tmp_path: Path) -> None:
    """The key and the rows are read from the same bytes, also of one that a process may have."""
    left_by_a_slow_stop(tmp_path, KEY)
    (left,) = journals(tmp_path)

    for key in (None, KEY):
        with opened_files() as paths:
            convert_abandoned(open_archive(tmp_path, key))

        assert paths.count(str(left)) == 1
    assert journals(tmp_path) == []


@pytest.mark.parametrize("key", [None, b"another key of it"], ids=["none", "another"])
def test_a_journal_is_not_converted_without_its_key(tmp_path: Path, key: bytes | None) -> None:
    left_by_a_slow_stop(tmp_path, KEY)
    left = journals(tmp_path)

    convert_abandoned(open_archive(tmp_path, key))

    assert journals(tmp_path) == left
    assert segments(tmp_path, DAY) == []


def test_a_journal_of_the_key_before_a_change_is_whole(tmp_path: Path) -> None:
    """The digest in its trailer is of that key: it counted as damaged, and its rows as lost."""
    left_by_a_slow_stop(tmp_path, KEY)
    key = SealKey.of(b"the key after a change", KEY)

    convert_abandoned(open_archive(tmp_path, key))

    assert journals(tmp_path) == []
    storage = LocalStorage(tmp_path)
    (day,) = seal_days(storage)
    (seal,) = (each.seal for each in read_seals(storage, day))
    assert isinstance(seal, Seal)
    assert seal.damages == ()
    assert seal.has_valid_mac(b"the key after a change")
