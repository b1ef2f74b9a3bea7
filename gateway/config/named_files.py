"""Files and folders that settings name: their paths, as written and as used, and digests."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from gateway.archive.durable import read_regular
from gateway.setting import PathKind


@dataclass(frozen=True, slots=True)
class WrittenPath:
    """Path of a setting as the file writes it, and as the process uses it."""

    written: str
    used: str
    kind: PathKind
    content: str = ""  # digest of a file, so that a reload notices another one at its path


def used_path(text: str, folder: Path, kind: PathKind) -> str:
    """Return a path relative to `folder`; a URL as it is."""
    if "://" in text:
        return text
    return str(Path(escape(str(folder)) if kind == "jars" else folder) / text)


def digest_of(path: Path) -> str:
    """Return the digest of a regular file; an empty text for one that cannot be read."""
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except (OSError, ValueError):  # ValueError: no path has this character
        return ""
