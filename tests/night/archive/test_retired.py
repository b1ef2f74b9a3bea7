"""Retired writers, by file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.heads import WriterHead, head_path, write_head
from gateway.archive.layout import JournalName
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.retired import retire, retirements
from gateway.night.archive.verification.writers import known_writers
from tests.archive.samples import NOON, START


def test_a_retired_writer_is_read_back_with_its_last_journal(tmp_path: Path) -> None:
    write_head(tmp_path, WriterHead("one", "one", 5, open="one-1-000001"), b"key")
    storage = LocalStorage(tmp_path)

    retire(storage, "one", "the plant is closed", 7, b"key")

    found = retirements(storage, b"key")
    assert {writer: each.journal for writer, each in found.items()} == {"one": "one-1-000001"}
    assert retirements(storage, b"other") == {}
    (tmp_path / "_retired" / "one.json").write_bytes(b"[]")
    assert retirements(storage, b"key") == {}


def test_a_machine_that_comes_back_with_an_older_head_ends_no_retirement(tmp_path: Path) -> None:
    """It sets the head aside that the retirement names; its own journals are earlier ones."""
    storage = LocalStorage(tmp_path)
    newest = WriterHead("one", "one", NOON, None, str(JournalName("one", NOON, 7)))
    path = head_path("one")
    storage.put(path, newest.signed(None).to_json())
    retire(storage, "one", "sold", NOON, None)
    storage.put(path.with_name(f"one-{NOON}.earlier"), newest.signed(None).to_json())
    older = WriterHead("one", "one", START, None, str(JournalName("one", START, 2)))

    storage.put(path, older.signed(None).to_json())

    assert known_writers(storage, None, None).retired.keys() == {"one"}
    retire(storage, "one", "sold", NOON, None)
    assert known_writers(storage, None, None).retired.keys() == {"one"}


@pytest.mark.parametrize(("writer", "why"), [("two", "gone"), ("one", " ")])
def test_an_unknown_writer_or_no_reason_is_refused(tmp_path: Path, writer: str, why: str) -> None:
    write_head(tmp_path, WriterHead("one", "one", 5))

    with pytest.raises(ArchiveError):
        retire(LocalStorage(tmp_path), writer, why, 7, None)
