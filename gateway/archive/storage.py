"""Where segments are kept: a local folder, an S3 bucket, HDFS; used by the converter alone.

A file appears under its name whole or not at all. Paths are relative to the archive, as
`gateway.archive.layout` makes them of an empty root.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs

from gateway.archive.journal.file import sync_folder
from gateway.archive.location import Place
from gateway.archive.segments.parquet import write_table
from gateway.errors import ArchiveError

_CONNECT: Final = 5.0  # seconds
_TRIES: Final = 3  # of one request; past them the journal waits for the next converter
_S3_OPTIONS: Final = ("region", "scheme", "endpoint_override")


class Store(Protocol):
    """An archive's files; OSError from any of its functions when it cannot be reached."""

    def write(self, path: Path, table: pa.Table) -> int:
        """Keep `table` as Parquet, replacing what was there; how many bytes it takes."""

    def copy(self, path: Path, source: Path) -> None:
        """Keep the local file `source`, unless a file of that size is there already."""

    def names(self, folder: Path) -> list[str]:
        """What lies in `folder`, in order; nothing when it is absent."""

    def open(self, path: Path) -> pa.NativeFile:
        """The file at `path`, to be closed by the caller."""

    def remove(self, folder: Path) -> None:
        """Remove `folder` with all in it; nothing happens when it is absent."""


def open_store(place: Place) -> Store:
    """The store of `place`; nothing is connected yet.

    Raises:
        ArchiveError: the URL says what this kind of place does not know.
    """
    return Elsewhere(place.url) if place.url else Here(place.local)


class Here:
    """A local folder: hidden until it is durable, then renamed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, path: Path, table: pa.Table) -> int:
        final = self._root / path
        final.parent.mkdir(parents=True, exist_ok=True)
        hidden = final.with_name(f".tmp-{final.name}")
        with hidden.open("wb") as file:
            write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        hidden.replace(final)
        for folder in list(final.parents)[: len(path.parents)]:
            sync_folder(folder)
        return size

    def copy(self, path: Path, source: Path) -> None:
        """Nothing to do: what would be copied lies in the archive already."""

    def names(self, folder: Path) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(path.name for path in (self._root / folder).iterdir())
        return []

    def open(self, path: Path) -> pa.NativeFile:
        return pa.OSFile(str(self._root / path))

    def remove(self, folder: Path) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(self._root / folder)


class Elsewhere:
    """A bucket or a distributed file system, through PyArrow."""

    def __init__(self, url: str) -> None:
        self._system, self._root = _system(url)

    def write(self, path: Path, table: pa.Table) -> int:
        content = (
            pa.BufferOutputStream()
        )  # whole first: a failing stream must not close half a file
        write_table(table, content)
        data = content.getvalue()
        self._put(self._at(path), data)
        return int(data.size)

    def copy(self, path: Path, source: Path) -> None:
        final = self._at(path)
        found = self._system.get_file_info(final)
        if found.type is not fs.FileType.File or found.size != source.stat().st_size:
            self._put(final, pa.py_buffer(source.read_bytes()))

    def names(self, folder: Path) -> list[str]:
        selector = fs.FileSelector(self._at(folder), allow_not_found=True)
        return sorted(found.base_name for found in self._system.get_file_info(selector))

    def open(self, path: Path) -> pa.NativeFile:
        return self._system.open_input_file(self._at(path))

    def remove(self, folder: Path) -> None:
        with suppress(FileNotFoundError):
            self._system.delete_dir(self._at(folder))

    def _at(self, path: Path) -> str:
        return f"{self._root}/{path.as_posix()}" if path.parts else self._root

    def _put(self, final: str, data: pa.Buffer) -> None:
        """An object of S3 appears when its stream closes; elsewhere it is renamed into place."""
        renamed = self._system.type_name != "s3"
        folder, _, name = final.rpartition("/")
        hidden = f"{folder}/.tmp-{name}" if renamed else final
        if renamed:
            self._system.create_dir(folder, recursive=True)
        with self._system.open_output_stream(hidden) as stream:
            stream.write(data)
        if renamed:
            with suppress(FileNotFoundError):
                self._system.delete_file(final)  # a rename there does not replace
            self._system.move(hidden, final)


def _system(url: str) -> tuple[fs.FileSystem, str]:
    """PyArrow's file system of `url`, and the path in it, without a slash at its end."""
    parts = urlsplit(url)
    if parts.scheme != "s3":
        system, path = fs.FileSystem.from_uri(url)
        return system, path.rstrip("/")
    options = dict(parse_qsl(parts.query))
    if unknown := options.keys() - set(_S3_OPTIONS):
        known = ", ".join(_S3_OPTIONS)
        raise ArchiveError(f"archive {url}: unknown option {min(unknown)!r}; use {known}")
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES)
    system = fs.S3FileSystem(**options, connect_timeout=_CONNECT, retry_strategy=retry)
    return system, f"{parts.hostname}{parts.path}".rstrip("/")


def segment_files(store: Store, day: str, hours: range = range(24)) -> Iterator[Path]:
    """The segments of the folder `day`, by hour and name."""
    for hour in hours:
        folder = Path(day) / f"hour={hour:02}"
        for name in store.names(folder):
            if not name.startswith((".", "_")):
                yield folder / name
