"""The checksum of a row in the spool's file, which tells a bit that the disk changed.

SQLite checks the form of its pages and no content. The checksum covers the other columns of a row
as well: a changed endpoint must not send a message to another target.
"""

from __future__ import annotations

from collections.abc import Sequence

from xxhash import xxh3_64

from gateway.errors import SpoolError


def checksum(body: bytes, columns: Sequence[object]) -> bytes:
    """The checksum, 8 bytes, of the body of a row and of its other `columns`."""
    found = xxh3_64(_bytes_of(columns))
    found.update(body)
    return found.digest()


def check(body: bytes, columns: Sequence[object], stored: bytes) -> None:
    """Check a row.

    Raises:
        SpoolError: the row is not as it was written.
    """
    if stored != checksum(body, columns):
        raise SpoolError(f"spool: the checksum of {len(body)} bytes differs")


def _bytes_of(columns: Sequence[object]) -> bytes:
    return repr((*columns,)).encode(errors="surrogatepass")
