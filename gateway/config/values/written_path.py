"""Paths of settings: relative to the folder of the file that contains them."""

from __future__ import annotations

from dataclasses import dataclass
from glob import escape
from pathlib import Path

from gateway.setting import PathKind


@dataclass(frozen=True, slots=True)
class WrittenPath:
    """Path of a setting as the file writes it, and as the process uses it."""

    written: str
    used: str
    kind: PathKind


def used_path(text: str, folder: Path, kind: PathKind) -> str:
    """Return a path relative to `folder`; a URL and an empty text as they are."""
    if not text or "://" in text:
        return text
    return str(Path(escape(str(folder)) if kind == "jars" else folder) / text)
