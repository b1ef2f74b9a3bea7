"""The converter's memory, which a sidecar's limit contains beside the gateway's."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.archive import NO_ROLLING, batch
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from tests.waiting import until

MESSAGES = 150_000  # two rows each: the tables of three segments
MAX_MEMORY = 270 << 10  # KiB; the interpreter with PyArrow takes 80 MiB of them
CONVERT = """\
import re, runpy, sys
from pathlib import Path
try:
    runpy.run_module("gateway.night.archive.segments", run_name="__main__", alter_sys=True)
except SystemExit as stop:
    own = Path("/proc/self/status").read_text()  # getrusage would count the parent before exec, too
    print(re.search(r"VmHWM:\\s*(\\d+) kB", own)[1])
    sys.exit(stop.code)
"""


@pytest.mark.nightly
def test_the_memory_does_not_grow_with_the_rows_of_a_journal(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "one", 1_790_000_000_000_000, NO_ROLLING)
    chance = random.Random(7)  # noqa: S311  # the same journal in every run
    durable: list[int] = []
    for first in range(0, MESSAGES, 1_000):
        rows = batch(chance, 1_790_000_000_000_000, first, 1_000)
        writer.append(rows, lambda: durable.append(1))
    until(lambda: len(durable) == MESSAGES // 1_000)
    writer.close()

    command = [sys.executable, "-c", CONVERT, str(tmp_path), *map(str, journals(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # our own

    assert not journals(tmp_path)
    assert int(done.stdout) < MAX_MEMORY


def test_pandas_is_not_loaded_where_it_is_installed(tmp_path: Path) -> None:
    """PyArrow loads it for each array: 40 MiB, and half of the time of a small conversion."""
    importlib.import_module("pandas")
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "gateway.night.archive.segments",
        str(tmp_path),
    ]

    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # our own

    assert "pyarrow.lib" in done.stderr
    assert "pandas.core" not in done.stderr
