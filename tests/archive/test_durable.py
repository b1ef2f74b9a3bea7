"""Folders exchange their names in one step, or in three where a file system has no exchange."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path

import pytest

from gateway.archive.durable import exchange_folders


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
