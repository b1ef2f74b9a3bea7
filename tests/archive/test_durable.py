"""Durable changes to a local folder: exchanged names, and new folders."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path

import pytest

from gateway.archive import durable
from gateway.archive.durable import exchange_folders, make_folders


class WithoutExchange:
    """A C library of a kernel whose file system refuses the exchange."""

    @staticmethod
    def renameat2(*_: object) -> int:
        ctypes.set_errno(errno.EINVAL)
        return -1


def folder(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "a").write_text(text)
    return path


@pytest.mark.parametrize("library", [None, WithoutExchange(), object()])
def test_two_folders_exchange_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: object
) -> None:
    if library is not None:
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    old, new = folder(tmp_path / "old", "old"), folder(tmp_path / "new", "new")

    exchange_folders(old, new)

    assert ((old / "a").read_text(), (new / "a").read_text()) == ("new", "old")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


@pytest.mark.parametrize("killed_after", [1, 2], ids=["first-rename", "second-rename"])
def test_folders_exchange_their_names_after_a_kill_between_two_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_after: int
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: WithoutExchange())
    folder(tmp_path / "old", "old").rename(tmp_path / ".old.old")
    if killed_after == 2:
        folder(tmp_path / "old", "older")
    for text in ("new", "newer"):
        exchange_folders(tmp_path / "old", folder(tmp_path / "new", text))
        assert (tmp_path / "old" / "a").read_text() == text
        if (tmp_path / "new").exists():
            (tmp_path / "new" / "a").unlink()
            (tmp_path / "new").rmdir()

    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_an_absent_folder_gets_the_content(tmp_path: Path) -> None:
    new = folder(tmp_path / "new", "new")

    exchange_folders(tmp_path / "old", new)

    assert (tmp_path / "old" / "a").read_text() == "new"
    assert not new.exists()


def test_nothing_changes_without_the_new_folder(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", "old")

    with pytest.raises(OSError, match="new"):
        exchange_folders(old, tmp_path / "new")

    assert (old / "a").read_text() == "old"


def test_the_names_of_new_folders_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync_folder", synced.append)

    make_folders(tmp_path / "a" / "b")
    assert synced == [tmp_path, tmp_path / "a"]

    make_folders(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    with pytest.raises(FileExistsError):
        make_folders(tmp_path / "a")
