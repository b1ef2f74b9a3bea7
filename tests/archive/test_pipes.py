"""Nobody waits for a pipe that another user makes with the name of a file of an archive."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.archive.durable import read_regular
from gateway.archive.heads import read_head
from gateway.archive.journal.claim_and_removal import claim_journal, is_in_use
from gateway.archive.journal.file import acknowledged_size
from gateway.archive.journal.local_head import last_link
from gateway.archive.layout import (
    HEADS,
    NAMES,
    JournalName,
    journal_folder,
    journals,
    lock_path,
)
from gateway.archive.name_store import NameStore
from gateway.archive.storage import LocalStorage
from gateway.errors import GatewayError
from gateway.file_lock import FileLock
from gateway.night.archive.segments.convert import convert
from gateway.night.archive.verification.waiting import waiting_journals
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime.inbound.recovery_from_journals import recover
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)

STEM = str(JournalName("edge", 1, 1))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An archive with a pipe for a journal and for each file that is read beside it."""
    for each in (
        journal_folder(tmp_path) / f"{STEM}.open",
        journal_folder(tmp_path) / f"{STEM}.ack",
        journal_folder(tmp_path) / "edge.echoes",
        lock_path(tmp_path, "edge"),
        tmp_path / HEADS / "edge.json",
        tmp_path / NAMES / "edge.jsonl",
    ):
        each.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(each)
    return tmp_path


def journal(root: Path) -> Path:
    return journal_folder(root) / f"{STEM}.open"


def test_a_pipe_is_no_journal(root: Path) -> None:
    assert journals(root) == []
    assert waiting_journals(root) == []
    assert recover(root, GatewayIdentity("edge"), {}).sent == []


def test_a_link_to_a_journal_is_none(tmp_path: Path) -> None:
    journal_folder(tmp_path).mkdir()
    (tmp_path / "elsewhere").write_bytes(b"of another archive")
    journal(tmp_path).symlink_to(tmp_path / "elsewhere")

    assert journals(tmp_path) == []


@pytest.mark.parametrize(
    "read",
    [
        lambda root: claim_journal(journal(root)),  # made after the journals were listed
        lambda root: is_in_use(journal(root)),
        lambda root: acknowledged_size(journal(root)),
        lambda root: convert(root, journal(root)),
        lambda root: read_head(root, "edge"),
        lambda root: last_link(root, "edge"),
        lambda root: LocalStorage(root).read(Path(HEADS, "edge.json")),
        lambda root: read_regular(root / NAMES / "edge.jsonl"),
    ],
    ids=["claim", "use", "size", "convert", "head", "link", "storage", "file"],
)
def test_a_pipe_is_refused_at_once(root: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises((OSError, GatewayError), match="no regular file"):
        read(root)


@pytest.mark.parametrize(
    "write",
    [lambda root: FileLock(lock_path(root, "edge"), "taken"), lambda root: NameStore(root, "edge")],
    ids=["lock", "names"],
)
def test_a_pipe_is_not_written(root: Path, write: Callable[[Path], object]) -> None:
    with pytest.raises((OSError, GatewayError), match="No such device or address"):
        write(root)
