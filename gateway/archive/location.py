"""The address of an archive: a local folder, or a URL with a local folder as its buffer.

Journals and the names behind shortened ones are always local, because a row must be durable
without waiting for a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway.errors import ArchiveError

REMOTE_SCHEMES: Final = ("s3", "hdfs", "viewfs")
DEFAULT_BUFFER: Final = "gateway-buffer"  # in the folder of the configuration


@dataclass(frozen=True, slots=True)
class ArchiveLocation:
    """The folder of the journals (`local`), and the URL of the segments if they lie elsewhere."""

    local: Path
    url: str = ""

    def __str__(self) -> str:
        return self.url or str(self.local)


def parse_location(path: str, buffer: str | None = None) -> ArchiveLocation:
    """Parse a folder or URL; `buffer` is the local folder of a remote archive.

    Raises:
        ArchiveError: it is not a URL, or has an unknown scheme, no bucket or host, or a secret.
    """
    if "://" not in path:
        return ArchiveLocation(Path(path))
    try:
        parts = urlsplit(path)
    except ValueError as error:  # brackets without an IPv6 address between them
        raise ArchiveError(f"archive: the location is no URL: {error}") from error
    if parts.scheme == "file":
        return ArchiveLocation(Path(parts.path))
    if parts.scheme not in REMOTE_SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in ("file", *REMOTE_SCHEMES))
        raise ArchiveError(f"archive: {parts.scheme}:// is no archive location; use {known}")
    if parts.password is not None:
        raise ArchiveError(
            f"archive: {parts.scheme}://{parts.hostname}: the URL contains a secret;"
            " set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
        )
    if not parts.hostname:
        raise ArchiveError(f"archive: {path!r} has no bucket or host; write it after ://")
    return ArchiveLocation(Path(buffer or DEFAULT_BUFFER), path)


def absolute_location(archive: Path | str) -> ArchiveLocation:
    """Return the location of an archive; executors may have another working directory.

    Raises:
        ArchiveError: the URL is malformed.
    """
    location = parse_location(str(archive))
    return location if location.url else ArchiveLocation(location.local.resolve())
