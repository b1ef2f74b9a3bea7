"""Names and heads between the buffer of a writer and its remote archive, in both directions.

Copies of files of other instances lie apart, so that no converter uploads them: they grow old.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.archive.durable import make_folders, read_regular, replacing
from gateway.archive.heads import head_path, newest_head, parsed, read_heads
from gateway.archive.layout import HEADS, NAMES, OTHERS, gateway_of, listed
from gateway.archive.storage import RemoteStorage, Storage

_BEGIN: Final = 4_096  # bytes that tell a file of names from that of an earlier buffer


def upload_names(storage: RemoteStorage, buffer: Path) -> None:
    """Upload the files of short names; the archive keeps the names of a buffer that was lost.

    Raises:
        OSError: the archive cannot be reached.
    """
    for source in listed(buffer / NAMES, ".jsonl"):
        path, begin = Path(NAMES) / source.name, b""
        with suppress(FileNotFoundError), storage.open(path) as file:
            begin = file.read(_BEGIN)
        content = read_regular(source)
        if content.startswith(begin):
            storage.upload(path, source)
        else:
            _add_lines(storage, path, content)


def _add_lines(storage: Storage, path: Path, content: bytes) -> None:
    """Add the whole lines of `content` that the file at `path` lacks."""
    stored = storage.read(path) or b""
    known = {b"", *stored.splitlines()}
    whole = content[: content.rfind(b"\n") + 1].splitlines()
    if added := [line for line in whole if line not in known]:
        storage.put(path, b"\n".join([stored, *added, b""]))


def copy_others(storage: Storage, buffer: Path, writer: str, key: bytes | None) -> Iterator[str]:
    """Copy the heads and names of other instances of the gateway of `writer`; yield the faults.

    Where the buffer has no head of `writer`, its own are among them: those of the last machine
    before this one. A head that has a fault is not copied.

    Raises:
        OSError: the archive cannot be reached.
    """
    is_new = not (buffer / head_path(writer)).exists()
    for path, size in [*storage.files(Path(HEADS)), *storage.files(Path(NAMES))]:
        if path.suffix not in {".json", ".jsonl"}:
            continue
        if _is_other(path.stem, writer) or (is_new and path.stem == writer):
            copy = buffer / path.parent / OTHERS / path.name
            yield from _copy(storage, path, size, copy, key)
    newest = newest_head(read_heads(storage, key), writer) if is_new else None
    if newest is not None and not newest.current:  # a machine before this one came back
        copy = buffer / HEADS / OTHERS / head_path(writer).name
        yield from _copy(storage, newest.path, 0, copy, key)


def _copy(storage: Storage, path: Path, size: int, copy: Path, key: bytes | None) -> Iterator[str]:
    """Copy the file at `path`, of `size` bytes, unless it is a head that has a fault: yield it."""
    if path.suffix == ".jsonl" and copy.exists() and copy.stat().st_size == size:
        return  # a file of names only grows
    content = storage.read(path)
    if content is None:
        return
    if path.suffix == ".json" and (fault := parsed(path, content, key).fault):
        yield f"{path}: {fault}"
        return
    make_folders(copy.parent)
    with replacing(copy) as file:
        file.write(content)


def _is_other(writer: str, own: str) -> bool:
    return writer != own and gateway_of(writer) == gateway_of(own)
