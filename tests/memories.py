"""Memories of sources in a file, as a gateway keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gateway.endpoints.base import Source
from gateway.endpoints.source_memory import KeepsMemory
from gateway.runtime.inbound.source_memories import (
    MemoryFile,
    SourceMemories,
)

ROLE: Final = "kind endpoint"


def remember(source: Source, file: Path, role: str = ROLE) -> None:
    """Let `source` keep its memory in `file`, as a process does that starts now."""
    assert isinstance(source, KeepsMemory)
    source.memory.keep_in(SourceMemories(MemoryFile(file)), role)


def remembered(file: Path) -> dict[str, object]:
    """Return the facts in `file`."""
    found = SourceMemories(MemoryFile(file)).load(ROLE)
    return dict(found or {})


def memories_in(file: Path) -> SourceMemories:
    """Return the memories in `file`, as a process has them that starts now."""
    return SourceMemories(MemoryFile(file))
