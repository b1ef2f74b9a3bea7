"""The files of an archive in a local folder, an S3 bucket or HDFS.

A file appears under its name complete or not at all. Paths are relative to the archive:
`gateway.archive.layout` makes them from an empty root. Rows are written and read through Arrow;
Spark opens the same files by `gateway.reconcile.input.spark_paths`.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs

from gateway.archive.durable import replacing, sync_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.segments.parquet import write_table
from gateway.errors import ArchiveError, first_line

_CONNECT_TIMEOUT: Final = 5.0  # seconds
_MAX_ATTEMPTS: Final = 3  # of one request; after them the journal waits for the next converter
_S3_OPTIONS: Final = ("region", "scheme", "endpoint_override")


class StoredFile(NamedTuple):
    """A file by its path in the archive, with its size in bytes."""

    path: Path
    size: int


class Storage(Protocol):
    """The files of one archive; every method raises OSError when it cannot be reached."""

    def write(self, path: Path, table: pa.Table) -> int:
        """Write `table` as Parquet, replacing the file at `path`; return its size in bytes."""

    def upload(self, path: Path, source: Path) -> None:
        """Copy the local file `source`, unless the archive has a file of that size at `path`."""

    def names(self, folder: Path) -> list[str]:
        """Return the names in `folder`, sorted; an absent folder has none."""

    def files(self, folder: Path) -> list[StoredFile]:
        """Return the files below `folder` at any depth, sorted; an absent folder has none."""

    def open(self, path: Path) -> pa.NativeFile:
        """Open the file at `path` for reading; the caller closes it."""

    def read(self, path: Path) -> bytes | None:
        """Return the content of the file at `path`; None when it is absent."""

    def remove(self, folder: Path) -> list[StoredFile]:
        """Remove `folder` with its content; return the removed files."""

    def replace(self, folder: Path, new: Path) -> None:
        """Remove `folder`, and give the folder `new` its name."""


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

    def write(self, path: Path, table: pa.Table) -> int:
        final = self._root / path
        final.parent.mkdir(parents=True, exist_ok=True)
        with replacing(final) as file:
            write_table(table, file)
            size = file.tell()
        for folder in list(final.parents)[1 : len(path.parents)]:
            sync_folder(folder)
        return size

    def upload(self, path: Path, source: Path) -> None:
        """Return at once: the local files of an archive lie in this folder already."""

    def names(self, folder: Path) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(path.name for path in (self._root / folder).iterdir())
        return []

    def files(self, folder: Path) -> list[StoredFile]:
        found: list[StoredFile] = []
        for parent, _, names in os.walk(self._root / folder):
            for name in names:
                path = Path(parent, name)
                with suppress(FileNotFoundError):  # removed since it was listed
                    found.append(StoredFile(path.relative_to(self._root), path.stat().st_size))
        return sorted(found)

    def open(self, path: Path) -> pa.NativeFile:
        return pa.OSFile(str(self._root / path))

    def read(self, path: Path) -> bytes | None:
        with suppress(FileNotFoundError):
            return (self._root / path).read_bytes()
        return None

    def remove(self, folder: Path) -> list[StoredFile]:
        removed = self.files(folder)
        while (self._root / folder).exists():
            with suppress(FileNotFoundError):  # another process removes it at the same time
                shutil.rmtree(self._root / folder)
        return removed

    def replace(self, folder: Path, new: Path) -> None:
        self.remove(folder)
        (self._root / new).rename(self._root / folder)
        sync_folder((self._root / folder).parent)


class RemoteStorage:
    """A bucket or a distributed file system, through Arrow's file systems."""

    def __init__(self, url: str) -> None:
        self._filesystem, self._root = _filesystem_of(url)
        self._is_s3 = self._filesystem.type_name == "s3"

    def write(self, path: Path, table: pa.Table) -> int:
        content = pa.BufferOutputStream()  # complete first: an error must not close half a file
        write_table(table, content)
        data = content.getvalue()
        self._put(self._at(path), data)
        return int(data.size)

    def upload(self, path: Path, source: Path) -> None:
        final = self._at(path)
        found = self._filesystem.get_file_info(final)
        if found.type is not fs.FileType.File or found.size != source.stat().st_size:
            self._put(final, pa.py_buffer(source.read_bytes()))

    def names(self, folder: Path) -> list[str]:
        selector = fs.FileSelector(self._at(folder), allow_not_found=True)
        return sorted(found.base_name for found in self._filesystem.get_file_info(selector))

    def files(self, folder: Path) -> list[StoredFile]:
        selector = fs.FileSelector(self._at(folder), allow_not_found=True, recursive=True)
        return sorted(
            StoredFile(Path(PurePosixPath(found.path).relative_to(self._root)), found.size)
            for found in self._filesystem.get_file_info(selector)
            if found.type is fs.FileType.File
        )

    def open(self, path: Path) -> pa.NativeFile:
        return self._filesystem.open_input_file(self._at(path))

    def read(self, path: Path) -> bytes | None:
        try:
            with self.open(path) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

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

    def _at(self, path: Path) -> str:
        return f"{self._root}/{path.as_posix()}" if path.parts else self._root

    def _put(self, final: str, data: pa.Buffer) -> None:
        """Write a file; one in S3 appears when its stream closes, any other when it is renamed."""
        folder, _, name = final.rpartition("/")
        written = final if self._is_s3 else f"{folder}/.tmp-{name}"
        if not self._is_s3:
            self._filesystem.create_dir(folder, recursive=True)
        with self._filesystem.open_output_stream(written) as stream:
            stream.write(data)
        if not self._is_s3:
            with suppress(FileNotFoundError):
                self._filesystem.delete_file(final)  # a rename there does not replace
            self._filesystem.move(written, final)


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
