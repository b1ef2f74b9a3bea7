"""What an archive's address means: a folder here, or a URL elsewhere; it opens nothing.

An archive elsewhere has a folder here too, its buffer: journals and the names behind shortened
ones are always local, for what is durable must not wait for a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway.errors import ArchiveError

REMOTE: Final = ("s3", "hdfs", "viewfs")
BUFFER: Final = "gateway-buffer"  # beside the process, when the configuration names no folder


@dataclass(frozen=True, slots=True)
class Place:
    """Where journals are (`local`), and where segments go when that is elsewhere (`url`)."""

    local: Path
    url: str = ""


def parse_place(path: str, buffer: str | None = None) -> Place:
    """The place of `path`; `buffer` is the local folder of one elsewhere.

    Raises:
        ArchiveError: a URL of an unknown kind, without a bucket, or with a secret in it.
    """
    if "://" not in path:
        return Place(Path(path))
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Place(Path(parts.path))
    if parts.scheme not in REMOTE:
        known = ", ".join(f"{scheme}://" for scheme in ("file", *REMOTE))
        raise ArchiveError(f"archive: {parts.scheme}:// is no place to archive to; use {known}")
    if parts.password is not None:
        raise ArchiveError(
            f"archive: {parts.scheme}://{parts.hostname}: a secret stands in the path;"
            " leave it to the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
        )
    if not parts.hostname:
        raise ArchiveError(f"archive: {path!r} names no bucket or host; write it after ://")
    return Place(Path(buffer or BUFFER), path)
