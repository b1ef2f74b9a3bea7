"""The files of an archive in a local folder, an S3 bucket or HDFS.

A file appears under its name complete or not at all. Paths are relative to the archive:
`gateway.archive.layout` makes them from an empty root. Rows are written and read through Arrow;
Spark's executors read them in the same way.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs

from gateway.archive.durable import (
    exchange_folders,
    make_folders,
    open_regular,
    read_regular,
    replacing,
    sync_folder,
)
from gateway.archive.layout import listed
from gateway.archive.location import ArchiveLocation
from gateway.archive.signed_json import StoredDigest
from gateway.errors import ArchiveError, first_line

_CONNECT_TIMEOUT: Final = 5.0  # seconds
_MAX_READ: Final = 2 << 30  # bytes of a file that is read at once; a merged segment has 200 MB
_MAX_ATTEMPTS: Final = 3  # of one request; after them the journal waits for the next converter
_S3_OPTIONS: Final = ("region", "scheme", "endpoint_override")


class StoredFile(NamedTuple):
    """A file by its path in the archive, with its size in bytes."""

    path: Path
    size: int


class Storage(Protocol):
    """The files of one archive; every method raises OSError when it cannot be reached."""

    def put(self, path: Path, content: bytes | pa.Buffer) -> StoredDigest:
        """Write `content`, replacing the file at `path`; return its hash and size."""

    def names(self, folder: Path) -> list[str]:
        """Return the names in `folder`, sorted; an absent folder has none."""

    def files(self, folder: Path) -> list[StoredFile]:
        """Return the files below `folder` at any depth, sorted; an absent folder has none."""

    def open(self, path: Path) -> pa.NativeFile:
        """Open the file at `path` for reading; the caller closes it."""

    def read(self, path: Path) -> bytes | None:
        """Return the content of the file at `path`; None when it is absent."""

    def move(self, path: Path, new: Path) -> None:
        """Give the file at `path` the name `new`, replacing a file there; again is not an error.

        Raises:
            OSError: one of the folders is behind a symbolic link.
        """

    def delete(self, path: Path) -> None:
        """Remove the file at `path`; an absent one is not an error.

        Raises:
            OSError: its folder is behind a symbolic link.
        """

    def remove(self, folder: Path) -> list[StoredFile]:
        """Remove `folder` with its content; return the removed files."""

    def replace(self, folder: Path, new: Path) -> None:
        """Give the folder `new` the name of `folder`, whose content is removed.

        In a local folder this is one step. A bucket has no folders to rename, and HDFS replaces
        none: there, an interrupted replacement leaves `new`, or a part of it under each name.
        """

    def owns(self, folder: Path) -> bool:
        """Return whether `folder` lies in the archive itself, and not behind a symbolic link."""


def open_storage(location: ArchiveLocation) -> Storage:
    """Return the storage of `location`; a remote one connects at its first use.

    Raises:
        ArchiveError: the URL is malformed, or has an unknown option.
        OSError: the file system of the URL has no client on this machine.
    """
    return RemoteStorage(location.url) if location.url else LocalStorage(location.local)


class LocalStorage:
    """A local folder; a written file is durable before it gets its name."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, path: Path, content: bytes | pa.Buffer) -> StoredDigest:
        final = self._root / path
        self._check_owned(path.parent)
        make_folders(final.parent)
        with replacing(final) as file:
            file.write(content)
        self._sync(path.parent)  # the name in it is durable already
        return _digest(content)

    def names(self, folder: Path) -> list[str]:
        return [path.name for path in listed(self._root / folder)]

    def files(self, folder: Path) -> list[StoredFile]:
        found: list[StoredFile] = []
        for parent, _, names in os.walk(self._root / folder, onerror=_raise_unless_absent):
            for name in names:
                path = Path(parent, name)
                with suppress(FileNotFoundError):  # removed since it was listed
                    found.append(StoredFile(path.relative_to(self._root), path.stat().st_size))
        return sorted(found)

    def open(self, path: Path) -> pa.NativeFile:
        os.close(open_regular(self._root / path))  # a pipe would be waited for
        return pa.OSFile(os.fsencode(self._root / path))  # a name may be no UTF-8

    def read(self, path: Path) -> bytes | None:
        with suppress(FileNotFoundError), os.fdopen(open_regular(self._root / path), "rb") as file:
            _check_size(path, os.fstat(file.fileno()).st_size)
            return file.read()
        return None

    def move(self, path: Path, new: Path) -> None:
        final = self._root / new
        self._check_owned(path.parent, new.parent)
        make_folders(final.parent)
        try:
            (self._root / path).replace(final)
            sync_folder((self._root / path).parent)
        except FileNotFoundError:
            if not final.exists():  # else an earlier call moved it
                raise
        self._sync(new)

    def delete(self, path: Path) -> None:
        self._check_owned(path.parent)
        with suppress(FileNotFoundError):
            (self._root / path).unlink()
            sync_folder((self._root / path).parent)

    def remove(self, folder: Path) -> list[StoredFile]:
        removed = self.files(folder)
        while (self._root / folder).exists():
            with suppress(FileNotFoundError):  # another process removes it at the same time
                shutil.rmtree(self._root / folder)
        return removed

    def replace(self, folder: Path, new: Path) -> None:
        exchange_folders(self._root / folder, self._root / new)
        self.remove(new)

    def owns(self, folder: Path) -> bool:
        parents = (folder, *folder.parents)
        return not any((self._root / each).is_symlink() for each in parents if each.parts)

    def _check_owned(self, *folders: Path) -> None:
        for folder in folders:
            if not self.owns(folder):
                raise OSError(f"{folder}: is behind a symbolic link; move the files themselves")

    def _sync(self, path: Path) -> None:
        """Make the name of the file at `path`, and of the folders above it, durable."""
        for folder in list((self._root / path).parents)[: len(path.parents)]:
            sync_folder(folder)


class RemoteStorage:
    """A bucket or a distributed file system, through Arrow's file systems."""

    def __init__(self, url: str) -> None:
        self._filesystem, self._root = _filesystem_of(url)
        self._is_s3 = self._filesystem.type_name == "s3"

    def put(self, path: Path, content: bytes | pa.Buffer) -> StoredDigest:
        """Write a file; one in S3 appears when its stream closes, any other when it is renamed."""
        final = self._at(path)
        folder, _, name = final.rpartition("/")
        written = final if self._is_s3 else f"{folder}/.{name}.tmp"
        if not self._is_s3:
            self._filesystem.create_dir(folder, recursive=True)
        with self._filesystem.open_output_stream(written) as stream:
            stream.write(content)
        if not self._is_s3:
            with suppress(FileNotFoundError):
                self._filesystem.delete_file(final)  # a rename there does not replace
            self._filesystem.move(written, final)
        return _digest(content)

    def upload(self, path: Path, source: Path) -> None:
        """Copy the local file `source`, unless the archive has a file of that size at `path`."""
        found = self._filesystem.get_file_info(self._at(path))
        if found.type is not fs.FileType.File or found.size != source.stat().st_size:
            self.put(path, read_regular(source))

    def names(self, folder: Path) -> list[str]:
        return sorted(path.name for path, _ in self._listed(folder))

    def files(self, folder: Path) -> list[StoredFile]:
        return sorted(
            StoredFile(path, found.size)
            for path, found in self._listed(folder, recursive=True)
            if found.type is fs.FileType.File
        )

    def written(self, folder: Path) -> dict[str, datetime]:
        """Return when each file in `folder` was written, by the clock of the storage (UTC)."""
        return {
            path.name: found.mtime
            for path, found in self._listed(folder)
            if found.type is fs.FileType.File and not path.name.startswith(".")
        }

    def open(self, path: Path) -> pa.NativeFile:
        return self._filesystem.open_input_file(self._at(path))

    def read(self, path: Path) -> bytes | None:
        with suppress(FileNotFoundError), self.open(path) as file:
            _check_size(path, file.size())
            return bytes(file.read())
        return None

    def move(self, path: Path, new: Path) -> None:
        if self._is_file(path):
            if not self._is_s3:
                self._filesystem.create_dir(self._at(new.parent), recursive=True)
                self.delete(new)  # a rename there does not replace
            self._filesystem.move(self._at(path), self._at(new))
        elif not self._is_file(new):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    def delete(self, path: Path) -> None:
        if self._is_file(path):
            with suppress(FileNotFoundError):
                self._filesystem.delete_file(self._at(path))

    def remove(self, folder: Path) -> list[StoredFile]:
        removed = self.files(folder)
        with suppress(FileNotFoundError):
            self._filesystem.delete_dir(self._at(folder))
        return removed

    def replace(self, folder: Path, new: Path) -> None:
        self.remove(folder)
        if not self._is_s3:
            self._filesystem.move(self._at(new), self._at(folder))
            return
        for path, _ in self.files(new):  # S3 has no folders to rename
            self._filesystem.move(self._at(path), self._at(folder / path.relative_to(new)))
        self.remove(new)

    def owns(self, folder: Path) -> bool:  # noqa: ARG002  # there are no links
        return True

    def _listed(
        self, folder: Path, *, recursive: bool = False
    ) -> Iterator[tuple[Path, fs.FileInfo]]:
        """Yield what `folder` has, by its path in the archive.

        Raises:
            OSError: a path leaves the folder, or a size is none: the storage may claim anything.
        """
        at = self._at(folder)
        selector = fs.FileSelector(at, allow_not_found=True, recursive=recursive)
        for found in self._filesystem.get_file_info(selector):
            inside = found.path.removeprefix(f"{at}/")
            levels = inside.split("/")
            is_below = inside != found.path and (recursive or len(levels) == 1)
            is_whole = found.type is not fs.FileType.File or found.size is not None
            if not is_below or not is_whole or not {"", ".", ".."}.isdisjoint(levels):
                text = "the storage lists it, and no file of an archive has such a path or size"
                raise OSError(errno.EINVAL, f"{text}; remove it", found.path)
            yield folder / inside, found

    def _at(self, path: Path) -> str:
        return f"{self._root}/{path.as_posix()}" if path.parts else self._root

    def _is_file(self, path: Path) -> bool:
        return bool(self._filesystem.get_file_info(self._at(path)).type is fs.FileType.File)


def _digest(content: bytes | pa.Buffer) -> StoredDigest:
    return StoredDigest(hashlib.sha256(content).hexdigest(), len(content))


def _check_size(path: Path, size: int) -> None:
    """Raise OSError when a file is too large to be read at once: it may be sparse, or a claim."""
    if size > _MAX_READ:
        raise OSError(errno.EFBIG, f"has {size} bytes, and at most {_MAX_READ} are read", str(path))


def _raise_unless_absent(error: OSError) -> None:
    """Raise the error of a folder that cannot be listed, as the walk does not do by itself."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _filesystem_of(url: str) -> tuple[fs.FileSystem, str]:
    """Return Arrow's file system of `url` and the path in it, without a slash at its end."""
    parts = urlsplit(url)
    if parts.scheme != "s3":
        try:
            system, path = fs.FileSystem.from_uri(url)
        except pa.ArrowInvalid as error:
            raise ArchiveError(f"archive {url}: {first_line(error)}") from error
        return system, path.rstrip("/")
    options = dict(parse_qsl(parts.query))
    if unknown := options.keys() - set(_S3_OPTIONS):
        known = ", ".join(_S3_OPTIONS)
        raise ArchiveError(f"archive {url}: unknown option {min(unknown)!r}; use {known}")
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=_MAX_ATTEMPTS)
    system = fs.S3FileSystem(**options, connect_timeout=_CONNECT_TIMEOUT, retry_strategy=retry)
    return system, f"{parts.hostname}{parts.path}".rstrip("/")
