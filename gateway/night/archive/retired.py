"""Writers that somebody retired: no night names them as silent.

ARCHIVE/_retired/<writer>.json
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.archive.heads import newest_head, read_heads
from gateway.archive.signed_json import SignedStatement
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError

_FOLDER: Final = Path("_retired")


@dataclass(frozen=True, slots=True)
class Retirement(SignedStatement):
    """The statement that a writer will not return after its last `journal`, and why."""

    writer: str
    why: str
    at: int  # microseconds since 1970-01-01 UTC
    journal: str | None


def retire(storage: Storage, writer: str, why: str, at: int, key: bytes | None) -> None:
    """Write durably that `writer` is retired, with its last journal and the reason.

    Raises:
        ArchiveError: the archive has no head of it, or no reason is given.
        OSError: the archive cannot be read or written.
    """
    if not why.strip():
        raise ArchiveError("--why: is empty; say why the writer will not return")
    stored = read_heads(storage, key)
    heads = {each.writer: each.head for each in stored if each.current}
    if writer not in heads:
        raise ArchiveError(f"writer {writer!r}: has no head; known are {', '.join(sorted(heads))}")
    newest = newest_head(stored, writer)  # a machine that comes back sets it aside
    head = newest.head if newest is not None else heads[writer]
    retirement = Retirement(writer, why, at, None if head is None else head.last)
    storage.put(_path(writer), retirement.signed(key).to_json())


def retirements(storage: Storage, key: bytes | None) -> dict[str, Retirement]:
    """Return the statements by writer; a damaged or forged file retires none.

    Raises:
        OSError: the archive cannot be read.
    """
    found: dict[str, Retirement] = {}
    for name in storage.names(_FOLDER):
        try:
            each = Retirement.from_json(storage.read(_FOLDER / name) or b"")
        except ValueError:
            continue
        if _path(each.writer).name == name and not each.fault(key):
            found[each.writer] = each
    return found


def _path(writer: str) -> Path:
    return _FOLDER / f"{writer}.json"
