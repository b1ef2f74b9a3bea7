"""A link that another user plants where the gateway writes leads it to no other file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.archive.durable import replace_text
from gateway.archive.heads import WriterHead, write_head
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import HEADS, NAMES, ROUTES
from gateway.archive.name_store import NameStore
from gateway.archive.routes import write_routes
from gateway.archive.storage import LocalStorage
from gateway.errors import GatewayError
from gateway.file_lock import FileLock
from gateway.night.archive.archive_lock import exclusive
from gateway.runtime.outbound.spool_db import FILE_NAME, SpoolDatabase, connect
from tests.archive.samples import QUICK, START

CONTENT = "of another user"
STRANGER = 65534  # a user


@pytest.fixture(params=["a file", "an empty file", "no file"])
def victim(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "victim"
    if request.param != "no file":
        path.write_text(CONTENT if request.param == "a file" else "")
        path.chmod(0o644)
    return path


def state_of(path: Path) -> tuple[str, int] | None:
    return (path.read_text(), path.stat().st_mode & 0o777) if path.exists() else None


def lock(path: Path) -> None:
    with exclusive(path, "another one"):
        pass


WRITERS: list[tuple[str, Callable[[Path], object]]] = [
    ("file.lock", lambda folder: FileLock(folder / "file.lock", "taken")),
    ("file.lock", lambda folder: lock(folder / "file.lock")),
    (f"{NAMES}/edge.jsonl", lambda folder: NameStore(folder, "edge")),
    (f"{NAMES}/.edge.index", lambda folder: NameStore(folder, "edge")),
    (FILE_NAME, lambda folder: connect(folder, create=True)),
]


FOLDERS: list[tuple[str, Callable[[Path], object]]] = [
    (".journal", lambda folder: ArchiveWriter(folder, "edge", START, QUICK)),
    (HEADS, lambda folder: write_head(folder, WriterHead("edge", "edge", START))),
    (ROUTES, lambda folder: write_routes(folder, "edge", [], START)),
    (NAMES, lambda folder: NameStore(folder, "edge")),
    ("spool", lambda folder: SpoolDatabase(folder / "spool").close(1.0)),
]


@pytest.mark.parametrize(("name", "write"), FOLDERS, ids=[name for name, _ in FOLDERS])
def test_a_folder_that_is_a_link_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, write: Callable[[Path], object]
) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / name).symlink_to(elsewhere)
    if os.geteuid() == 0:
        os.chown(folder / name, STRANGER, STRANGER, follow_symlinks=False)
    else:
        monkeypatch.setattr("os.geteuid", lambda: STRANGER)

    with pytest.raises((OSError, GatewayError), match="is a symbolic link of another user"):
        write(folder)

    assert list(elsewhere.iterdir()) == []


def test_a_folder_that_is_a_link_of_ones_own_is_followed(tmp_path: Path) -> None:
    """An administrator keeps a spool on another disk so."""
    elsewhere, spool = tmp_path / "elsewhere", tmp_path / "spool"
    elsewhere.mkdir()
    spool.symlink_to(elsewhere)

    SpoolDatabase(spool).close(1.0)

    assert (elsewhere / FILE_NAME).exists()


@pytest.mark.parametrize(
    ("name", "write"), WRITERS, ids=["lock", "night-lock", "names", "index", "spool"]
)
def test_a_file_that_is_a_link_is_refused(
    tmp_path: Path, victim: Path, name: str, write: Callable[[Path], object]
) -> None:
    folder, before = tmp_path / "folder", state_of(victim)
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(victim)

    with pytest.raises((OSError, GatewayError)):
        write(folder)

    assert state_of(victim) == before


def test_a_link_in_place_of_the_hidden_file_is_replaced(tmp_path: Path, victim: Path) -> None:
    before, path = state_of(victim), tmp_path / "state.json"
    (tmp_path / ".state.json.tmp").symlink_to(victim)

    replace_text(path, "new")

    assert state_of(victim) == before
    assert (path.read_text(), path.is_symlink()) == ("new", False)


def test_a_folder_of_an_archive_that_is_a_link_is_not_written(tmp_path: Path) -> None:
    elsewhere, archive = tmp_path / "elsewhere", tmp_path / "archive"
    elsewhere.mkdir()
    archive.mkdir()
    (archive / "date=2026-03-14").symlink_to(elsewhere)

    with pytest.raises(OSError, match="symbolic link"):
        LocalStorage(archive).put(Path("date=2026-03-14/hour=11/a.parquet"), b"rows")

    assert list(elsewhere.iterdir()) == []


def test_a_link_that_replaces_a_lock_that_is_held_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user exchanges the file between the lock and the name of its holder."""
    path, victim = tmp_path / "file.lock", tmp_path / "victim"
    victim.write_text(CONTENT)

    def swap() -> str:
        path.unlink()
        path.symlink_to(victim)
        return "process 1"

    monkeypatch.setattr("gateway.night.archive.archive_lock._holder", swap)
    lock(path)

    assert victim.read_text() == CONTENT
