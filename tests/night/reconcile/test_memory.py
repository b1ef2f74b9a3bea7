"""The limits of a cgroup, of both versions, and of a machine without one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.night.reconcile.memory import heap, memory_bytes

GIGABYTE = 1 << 30
CASES = [
    pytest.param({}, "", None, id="no-cgroup"),
    pytest.param({"memory.max": "1073741824\n"}, "0::/\n", GIGABYTE, id="version-2"),
    pytest.param({"memory.max": "max\n"}, "0::/\n", None, id="version-2-without-limits"),
    pytest.param(
        {"memory.max": "max", "a/memory.max": "1073741824", "a/b/memory.max": "max"},
        "0::/a/b\n", GIGABYTE, id="version-2-in-a-group",
    ),
    pytest.param(
        {"memory/memory.limit_in_bytes": "1073741824\n"}, "4:memory:/\n3:cpu,cpuacct:/\n",
        GIGABYTE, id="version-1",
    ),
    pytest.param(
        {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, "4:memory:/\n", None,
        id="version-1-without-limits",
    ),
    pytest.param({"memory.max": "a lot"}, "0::/\n", None, id="no-number"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "own", "memory"), CASES)
def test_the_limits_of_the_cgroup_hold(
    tmp_path: Path, files: Mapping[str, str], own: str, memory: int | None
) -> None:
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    group = tmp_path / "own"
    group.write_text(own)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    assert memory_bytes(tmp_path / "groups", group) == min(memory or machine, machine)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        pytest.param(GIGABYTE, "512m", id="small"),
        pytest.param(6 * GIGABYTE, "1536m", id="a-quarter"),
        pytest.param(64 * GIGABYTE, "4096m", id="large"),
    ],
)
def test_the_heap_is_a_quarter_of_the_memory(memory: int, expected: str) -> None:
    assert heap(memory) == expected
