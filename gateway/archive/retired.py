"""Writers that somebody retired: no night names them as silent.

ARCHIVE/_retired/<writer>.json
"""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from typing import Final

from gateway.archive.heads import read_heads
from gateway.archive.signed_json import canonical_json, mac_of
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError

_FOLDER: Final = Path("_retired")
_SUFFIX: Final = ".json"
_VERSION: Final = 1


def retire(storage: Storage, writer: str, why: str, at: int, key: bytes | None) -> None:
    """Write durably that `writer` is retired, with its last journal and the reason.

    Raises:
        ArchiveError: the archive has no head of it, or no reason is given.
        OSError: the archive cannot be read or written.
    """
    if not why.strip():
        raise ArchiveError("--why: is empty; say why the writer will not return")
    heads = {each.writer: each.head for each in read_heads(storage, key) if each.current}
    if writer not in heads:
        raise ArchiveError(f"writer {writer!r}: has no head; known are {', '.join(sorted(heads))}")
    head = heads[writer]
    last = None if head is None else head.last
    document = {"version": _VERSION, "writer": writer, "why": why, "at": at, "journal": last,
                "keyed": key is not None}  # fmt: skip
    content = canonical_json({**document, "mac": mac_of(document, key)})
    storage.put(_FOLDER / f"{writer}{_SUFFIX}", content)


def retired_writers(storage: Storage, key: bytes | None) -> dict[str, str | None]:
    """Return the retired writers with their last journals; a damaged or forged file retires none.

    Raises:
        OSError: the archive cannot be read.
    """
    found: dict[str, str | None] = {}
    for name in storage.names(_FOLDER):
        if not name.endswith(_SUFFIX) or name.startswith("."):
            continue
        try:
            document = json.loads(storage.read(_FOLDER / name) or b"")
            mac = document.pop("mac")
            sound = (document["keyed"] and key is None) or hmac.compare_digest(
                mac.encode(), mac_of(document, key).encode()
            )
            if sound and document["writer"] == name.removesuffix(_SUFFIX):
                found[document["writer"]] = document["journal"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return found
