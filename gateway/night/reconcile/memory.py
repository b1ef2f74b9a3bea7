"""The memory that this process may use: of its cgroup, or of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
_UNLIMITED: Final = 1 << 60  # version 1 writes a number above it, where no limit is set
_OWN: Final = Path("/proc/self/cgroup")


def memory_bytes(root: Path = CGROUPS, own: Path = _OWN) -> int:
    """Return the memory that this process may use.

    A limit of a group above its own also holds.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for folder in _folders(root, own):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _text(folder / name)
            if text.isdecimal() and 0 < int(text) < _UNLIMITED:
                limits.append(int(text))
    return min(limits)


def heap(memory: int) -> str:
    """Return the heap of a local Spark: a quarter of the memory, from 512 MB to 4 GB.

    Spark spills the rest to disk, and the Python processes need their own part.
    """
    return f"{min(max(memory >> 22, 512), 4096)}m"


def _folders(root: Path, own: Path) -> Iterator[Path]:
    """Yield the cgroup folders of this process for memory, and those above them.

    In a container, the process sees its own group as the root.
    """
    yield from (root, root / "memory")
    for line in _text(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in {"", "memory"}:
            group = Path(path.lstrip("/"))
            yield from (root / controllers / each for each in (group, *group.parents))


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip()
    return ""
