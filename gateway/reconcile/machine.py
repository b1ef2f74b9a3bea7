"""The memory and the processors that this process may use: of its cgroup, or of the machine."""

from __future__ import annotations

import os
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
_UNLIMITED: Final = 1 << 60  # version 1 writes a number above it, where no limit is set
_OWN: Final = Path("/proc/self/cgroup")


def memory_bytes(root: Path = CGROUPS, own: Path = _OWN) -> int:
    """Return the memory that this process may use."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for folder in _folders(root, own, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _number(_text(folder / name))
            if limit is not None and 0 < limit < _UNLIMITED:
                limits.append(limit)
    return min(limits)


def processors(root: Path = CGROUPS, own: Path = _OWN) -> int:
    """Return the number of processors that this process may use, at least one."""
    limits = [len(os.sched_getaffinity(0))]
    for folder in _folders(root, own, "cpu"):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        shares = [
            (_number(quota), _number(period)),
            (
                _number(_text(folder / "cpu.cfs_quota_us")),
                _number(_text(folder / "cpu.cfs_period_us")),
            ),
        ]
        limits += [ceil(part / whole) for part, whole in shares if part and whole and part > 0]
    return max(min(limits), 1)


def heap(memory: int) -> str:
    """Return the heap of a local Spark: a quarter of the memory, from 512 MB to 4 GB.

    Spark spills the rest to disk, and the Python processes need their own part.
    """
    return f"{min(max(memory >> 22, 512), 4096)}m"


def _folders(root: Path, own: Path, controller: str) -> list[Path]:
    """Return the cgroup folders of this process for a controller, and all folders above them.

    A limit of a group above holds, too. In a container, the process sees its own group as the root.
    """
    found = {root, root / controller}
    for line in _text(own).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        base = root / controller if controllers else root
        group = Path(path.lstrip("/"))
        found.update(base / each for each in (group, *group.parents))
    return sorted(found)


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip()
    return ""


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdecimal() else None
