"""Permissions of the files and folders of an archive and a spool."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from gateway.archive.durable import close_to_others, make_folders, open_private, replace_text
from gateway.archive.heads import SourceConnection, read_heads
from gateway.archive.journal.local_head import LocalHead
from gateway.archive.layout import converted_journals, days, journals
from gateway.archive.name_store import NameStore
from gateway.archive.storage import LocalStorage
from gateway.file_lock import FileLock
from gateway.night.archive.parquet import encoded
from gateway.night.archive.verification.waiting import waiting_journals
from gateway.runtime.outbound.spool_db import SpoolDatabase
from gateway.runtime.record.connection_log import ConnectionLog


@pytest.fixture(params=[0o022, 0o000, 0o077], ids=["usual", "open", "strict"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    mask: int = request.param
    before = os.umask(mask)
    try:
        yield mask
    finally:
        os.umask(before)


def modes(root: Path) -> dict[str, int]:
    found = {each.name: stat.S_IMODE(each.stat().st_mode) for each in root.rglob("*")}
    assert found
    return found


@contextmanager
def as_nobody() -> Iterator[None]:
    """Lose root's right to read every folder, for as long as the block lasts."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


@pytest.mark.parametrize(
    ("listing", "folder"),
    [
        pytest.param(journals, ".journal", id="journals"),
        pytest.param(converted_journals, ".journal", id="converted-journals"),
        pytest.param(waiting_journals, ".journal", id="waiting-journals"),
        pytest.param(lambda root: read_heads(LocalStorage(root)), "_heads", id="heads"),
        pytest.param(days, "", id="days"),
    ],
)
def test_a_folder_that_cannot_be_read_is_an_error_and_not_empty(
    listing: Callable[[Path], object], folder: str
) -> None:
    with TemporaryDirectory() as path:  # nobody can enter the folders above that of a test
        root = Path(path)
        root.chmod(0o755)
        assert not listing(root / "absent")
        (root / folder).mkdir(exist_ok=True)
        (root / folder).chmod(0o311)  # may be entered and not listed

        with as_nobody(), pytest.raises(PermissionError):
            listing(root)

        (root / folder).chmod(0o700)


def test_others_can_read_nothing_of_an_archive(tmp_path: Path, umask: int) -> None:
    storage = LocalStorage(tmp_path)
    storage.put(Path("_seals/date=2026-01-01/a.json"), b"{}")
    storage.put(Path("date=2026-01-01/hour=00/a.parquet"), encoded(pa.table({"name": ["a"]})))
    storage.move(Path("_seals/date=2026-01-01/a.json"), Path("moved/here/a.json"))
    names = NameStore(tmp_path, "one")
    names.remember("~a", ("x",))
    names.commit()
    connections = ConnectionLog(LocalHead(tmp_path, "one", "one"), {"here": ""})
    for durable in (False, True):
        connections.put("here", SourceConnection(1, known=True), durable=durable)
        replace_text(tmp_path / f"{durable}.json", "{}")
    FileLock(tmp_path / "a.lock", "is locked").close()

    found = modes(tmp_path)
    names.close()

    allowed = 0o750 & ~umask
    assert {name: oct(mode) for name, mode in found.items() if mode & ~allowed} == {}
    assert found["a.parquet"] == 0o640 & ~umask
    assert found["hour=00"] == allowed


def test_others_can_read_nothing_of_a_spool_in_an_open_folder(tmp_path: Path, umask: int) -> None:
    tmp_path.chmod(0o755)
    SpoolDatabase(tmp_path).close(10)
    database = SpoolDatabase(tmp_path)
    found = modes(tmp_path)
    database.close(10)

    assert "spool.sqlite-wal" in found
    assert {name: oct(mode) for name, mode in found.items() if mode & ~(0o640 & ~umask)} == {}


def test_an_open_file_of_an_earlier_version_is_closed_to_others(tmp_path: Path) -> None:
    for name in ("spool.sqlite", "spool.sqlite-wal"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o664)
    SpoolDatabase(tmp_path).close(10)

    assert stat.S_IMODE((tmp_path / "spool.sqlite").stat().st_mode) == 0o660


def test_folders_that_exist_keep_their_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_folders(tmp_path / "a" / "b")
    make_folders(tmp_path / "a" / "b")

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert modes(tmp_path) == {"a": 0o750, "b": 0o750}


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="a"):
        make_folders(tmp_path / "a" / "b")


def test_rights_of_the_group_stay(tmp_path: Path) -> None:
    file = tmp_path / "a"
    os.close(open_private(file, os.O_WRONLY | os.O_CREAT))
    file.chmod(0o666)
    close_to_others(file)

    assert stat.S_IMODE(file.stat().st_mode) == 0o660
