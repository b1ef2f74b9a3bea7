from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from select import select
from time import monotonic

import pytest

from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from gateway.archive.storage import LocalStorage
from gateway.night.archive.verification.verify import verify_archive
from tests.archive.samples import DAY, QUICK, START, identity, noon
from tests.archived import read_rows, segments
from tests.waiting import PATIENCE

PROJECT = Path(__file__).parents[2]


def killed(root: Path, start: int, seconds: float) -> list[int]:
    """The numbers that an appender acknowledged before a kill `seconds` after its first row."""
    command = [sys.executable, "-m", "tests.archive.appender", str(root), str(start)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)  # noqa: S603
    with process:
        assert process.stdout is not None
        assert select([process.stdout], [], [], PATIENCE)[0]
        printed = _read_for(process.stdout.fileno(), seconds)
        process.kill()
        printed += process.stdout.read()
    whole, _, _ = printed.rpartition(b"\n")
    return [int(line) for line in whole.split()]


def _read_for(file: int, seconds: float) -> bytes:
    printed, deadline = b"", monotonic() + seconds
    while (left := deadline - monotonic()) > 0:
        if select([file], [], [], left)[0]:
            printed += os.read(file, 1 << 16)
    return printed


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.nightly)])
def test_every_acknowledged_row_is_archived_once_after_kills(tmp_path: Path, kills: int) -> None:
    rng = random.Random(kills)  # noqa: S311  # moments, not secrets
    acknowledged: set[bytes] = set()
    for kill in range(kills):
        start = START + kill
        numbers = killed(tmp_path, start, rng.uniform(0, 0.3))
        acknowledged |= {identity(number, start) for number in numbers}

    ArchiveWriter(tmp_path, "edge", START + kills, QUICK, clock=noon).close()  # the next start

    found = Counter(row["id"] for row in read_rows(tmp_path, DAY))
    assert acknowledged
    assert acknowledged <= found.keys()
    assert set(found.values()) == {1}
    assert journals(tmp_path) == []
    every = segments(tmp_path, DAY)
    assert every
    verified = verify_archive(LocalStorage(tmp_path), journals=tmp_path)
    assert {each.rule for each in verified.findings} <= {"killed-journal"}
    assert {each.path for each in verified.segments if each.sealed} == {
        path.relative_to(tmp_path) for path in every
    }


def files(folder: Path) -> set[Path]:
    return set(folder.glob("*/*/*"))
