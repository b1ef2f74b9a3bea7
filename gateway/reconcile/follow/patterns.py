"""Paths for Spark's file source, which reads some characters as a pattern."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_PATTERN_CHARACTERS: Final = re.compile(r"([\\{}\[\]*?])")


def literal_path(text: str | Path) -> str:
    """Return a path with escaped pattern characters, so that it matches itself only."""
    return _PATTERN_CHARACTERS.sub(r"\\\1", str(text))
