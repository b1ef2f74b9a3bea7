"""Random faults in sealed archives: each is found, and none is found where there is none."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest

from gateway.archive.layout import HOUR, day_of
from gateway.night.archive.seals.seal import End, Seal
from tests.archive.samples import DAY, START
from tests.night.archive.verification.chained import (
    KEY,
    MIDNIGHT,
    SECOND,
    Chained,
    chained,
    errors,
    file_of,
    sealed_day,
)

DAYS = 4


def remove(path: Path, _: random.Random) -> None:
    path.unlink()


def truncate(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))])


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def extend(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes() + rng.randbytes(9))


def copy(path: Path, _: random.Random) -> None:
    shutil.copy2(path, path.with_name(f"copy-{path.name}"))


def exchange(path: Path, rng: random.Random) -> None:
    """Exchange the contents of two files of one kind."""
    kind = next(each for each in path.parents if each.name.startswith("date=")).parent
    other = rng.choice([each for each in files(kind) if each != path])
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / f"date={DAY}").rglob("*") if path.is_file())


FAULTS = (remove, truncate, flip, extend, exchange, copy)


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_random_fault_in_a_file_is_found(
    tmp_path: Path, key: bytes | None, fault: Callable[[Path, random.Random], None]
) -> None:
    rng = random.Random(1)  # noqa: S311  # places of faults
    for number in range(6):
        root = tmp_path / str(number)
        made = sealed_day(root, key)
        path = rng.choice([path for kind in ("", "_seals") for path in files(root / kind)])
        fault(path, rng)

        assert errors(made.verify()), (fault.__name__, path)


@pytest.mark.parametrize("seed", range(12))
def test_a_random_chain_is_proven_until_a_journal_is_removed(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  # a test's chain
    made = chained(tmp_path)
    for gateway in ("east", "west")[: rng.randint(1, 2)]:
        random_chain(made, gateway, rng)
    days = [DAY + number * timedelta(days=1) for number in range(DAYS)]

    assert [errors(made.verify(day)) for day in days] == [[] for _ in days]

    removed = rng.choice([seal for seal in made.seals if in_the_middle(made, seal)])
    file_of(tmp_path, removed).unlink()
    for day in days:
        if touches(removed, day):
            assert errors(made.verify(day)), (removed, day)


def random_chain(made: Chained, gateway: str, rng: random.Random) -> None:
    """Journals without rows from before the first day until after the last one."""
    time, start = MIDNIGHT - rng.randint(1, 20) * HOUR, START
    end = MIDNIGHT + DAYS * 24 * HOUR
    while time < end:
        how = rng.choice([End.CLOSED, End.CLOSED, End.CLOSED, End.STOPPED, End.KILLED])
        closed = time + rng.randint(0, 9 * HOUR)
        if closed >= end:
            how = End.CLOSED
        made.add(gateway, time, closed, end=how, start=start, rows=0)
        time = closed
        if how is not End.CLOSED:
            start += 1
            time += rng.randint(0, 40) * HOUR
    made.add(gateway, max(time, end), max(time, end) + SECOND, start=start, rows=0, end=End.STOPPED)


def in_the_middle(made: Chained, seal: Seal) -> bool:
    """Whether a seal has a predecessor and a successor, so that its absence leaves a gap."""
    own = [each for each in made.seals if each.gateway == seal.gateway]
    return seal not in (own[0], own[-1]) and any(
        touches(seal, DAY + number * timedelta(days=1)) for number in range(DAYS)
    )


def touches(seal: Seal, day: date) -> bool:
    return day_of(seal.opened) <= day <= day_of(seal.closed)
