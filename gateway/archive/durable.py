"""Durable changes to a local folder: files replaced in one step, synced names, and permissions.

Other users of the machine can read neither file nor folder; a stricter umask is kept. A file that
is a symbolic link is not written: whoever may write the folder could choose another file by it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

_FILE_MODE: Final = 0o640  # the group may read: a group of its own can read the archive
_FOLDER_MODE: Final = 0o750
_CURRENT_FOLDER: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE


def open_private(path: str | Path, flags: int) -> int:
    """Open a file, an `opener` of the built-in `open`; a new one is closed to other users.

    Raises:
        OSError: the file cannot be opened, or is a symbolic link, a pipe or a device.
    """
    return _regular(os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, _FILE_MODE), path)


def open_regular(path: Path) -> int:
    """Open a regular file for reading; return its descriptor, which the caller closes.

    Raises:
        OSError: it is absent, or a folder, a pipe or a device; a pipe is not waited for.
    """
    return _regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK), path)


def _regular(file: int, path: str | Path) -> int:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return file


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: as `open_regular`.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read()


def close_to_others(path: Path) -> None:
    """Create `path` when it is absent, and let no other user read or write it.

    A program that opens its files itself, as SQLite, keeps these permissions.

    Raises:
        OSError: the file cannot be created, or is a symbolic link.
    """
    try:
        os.close(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link", str(path)) from None
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & stat.S_IRWXO:
            path.chmod(mode & ~stat.S_IRWXO)


def make_folders(path: Path) -> None:
    """Create `path` and the folders above it that are absent, durably and closed to other users.

    Raises:
        OSError: a folder cannot be created, a file has its name, or it is a link of another user.
    """
    try:
        path.mkdir(mode=_FOLDER_MODE)
    except FileExistsError:
        refuse_foreign_link(path)
        if path.is_dir():
            return
        raise
    except FileNotFoundError:
        make_folders(path.parent)
        path.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    sync_folder(path.parent)


def refuse_foreign_link(folder: Path) -> None:
    """Refuse a folder that another user leads elsewhere; a link of root or of our own is followed.

    Raises:
        OSError: it is such a link.
    """
    found = folder.lstat()
    if stat.S_ISLNK(found.st_mode) and found.st_uid not in {0, os.geteuid()}:
        text = "is a symbolic link of another user; remove it, and look for who may write there"
        raise OSError(errno.ELOOP, text, str(folder))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces `path` at the end of the block, durably and in one step.

    A reader sees the old content or the new. An error inside the block leaves the old content and
    a hidden file, which the next replacement overwrites.

    Raises:
        OSError: the folder cannot be written.
    """
    hidden = path.with_name(f".{path.name}.tmp")  # `*.parquet` does not match it
    hidden.unlink(missing_ok=True)  # of an earlier error, or planted: a link to another file
    with open(hidden, "xb", opener=open_private) as file:  # `Path.open` has none
        yield file
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
    sync_folder(path.parent)


def replace_text(path: Path, text: str) -> None:
    """Replace the content of `path` with `text` as UTF-8, durably and in one step."""
    with replacing(path) as file:
        file.write(text.encode())


def exchange_folders(one: Path, other: Path) -> None:
    """Let the folder `other` and the folder `one`, which may be absent, exchange their names.

    No process ever finds `one` absent or incomplete, not even when this process is killed.

    Raises:
        OSError: `other` is absent, or a folder cannot be written.
    """
    if one.is_dir():
        _rename_exchanging(one, other)
    else:
        other.rename(one)
    for parent in {one.parent, other.parent}:
        sync_folder(parent)


def _rename_exchanging(one: Path, other: Path) -> None:
    """Call `renameat2` of Linux, which Python does not offer; where it is absent, rename twice."""
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        code = errno.ENOSYS
    else:
        paths = (_CURRENT_FOLDER, os.fsencode(one), _CURRENT_FOLDER, os.fsencode(other))
        code = ctypes.get_errno() if exchange(*paths, _EXCHANGE) else 0
    if code in {errno.ENOSYS, errno.EINVAL}:  # some file systems exchange no names
        aside = one.with_name(f".{one.name}.old")
        shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed before its end
        one.rename(aside)
        other.rename(one)
        aside.rename(other)
    elif code:
        raise OSError(code, os.strerror(code), str(other))


def sync_data(file: int) -> None:
    """Make the content of an open file durable; macOS has no `fdatasync`."""
    getattr(os, "fdatasync", os.fsync)(file)


def sync_folder(path: Path) -> None:
    """Make the names in `path` durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
