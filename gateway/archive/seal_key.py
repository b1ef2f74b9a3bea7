"""The key of the seals: from the environment, or from a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Self

from gateway.errors import ArchiveError, first_line

KEY_VARIABLE: Final = "GATEWAY_SEAL_KEY"
PREVIOUS_KEY_VARIABLE: Final = "GATEWAY_PREVIOUS_SEAL_KEY"


class SealKey(bytes):
    """The key that signs; the `previous` one proves what it signed before a change of the key."""

    previous: bytes | None = None

    @classmethod
    def of(cls, key: bytes, previous: bytes | None) -> Self:
        """Return a key and that before it; an empty one is none."""
        made = cls(key)
        made.previous = previous or None
        return made


def proving_keys(key: bytes | None) -> tuple[bytes | None, ...]:
    """Return the keys that prove a statement: the one that signs, and that before it."""
    previous = key.previous if isinstance(key, SealKey) else None
    return (key,) if previous is None else (key, previous)


def key_from_environment() -> bytes | None:
    """Return the key in the variable GATEWAY_SEAL_KEY; None when it is not set or empty."""
    key = os.environb.get(KEY_VARIABLE.encode())
    return with_previous(key) if key else None


def with_previous(key: bytes) -> SealKey:
    """Return the key with that before it, from the variable GATEWAY_PREVIOUS_SEAL_KEY."""
    return SealKey.of(key, os.environb.get(PREVIOUS_KEY_VARIABLE.encode()))


def read_key(path: Path) -> bytes:
    """Return the key in the file at `path`, without a line end after it.

    Raises:
        ArchiveError: the file cannot be read, or is empty.
    """
    try:
        key = path.read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise ArchiveError(f"{path}: cannot be read: {first_line(error)}") from error
    if not key:
        raise ArchiveError(f"{path}: is empty; write the value of archive.seal_key into it")
    return with_previous(key)
