"""The archive as a night finds it, without Spark."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path

import pytest

from gateway.archive.heads import head_path
from gateway.archive.layout import SEALS
from gateway.archive.night_record import NO_NIGHT
from gateway.archive.retired import retire
from gateway.archive.seals.store import read_seal
from gateway.archive.storage import LocalStorage
from gateway.reconcile.input.inputs import find_inputs
from gateway.reconcile.job import Job
from gateway.reconcile.nights.world import World, world_of
from tests.archive.samples import DAY, NOON, START, archive, delivered, received

_OPENED: list[str] = []
_COUNTING = {"on": False}


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _COUNTING["on"]:
        _OPENED.append(str(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def hook() -> None:
    sys.addaudithook(_count)  # stays for the life of the process


@contextmanager
def opened() -> Iterator[list[str]]:
    """The paths that this process opens."""
    _OPENED.clear()
    _COUNTING["on"] = True
    yield _OPENED
    _COUNTING["on"] = False


def world(root: Path) -> World:
    read = partial(read_seal, LocalStorage(root))
    return world_of(Job(root, DAY), NO_NIGHT, NOON, frozenset(), read)


def test_a_night_reads_each_seal_once(tmp_path: Path) -> None:
    for number in range(3):
        archive(tmp_path, received([number]), delivered([number]), start=START + number)
    read = partial(read_seal, LocalStorage(tmp_path))
    job = Job(tmp_path, DAY, read_seal=lru_cache(9)(read))
    assert job.read_seal is not None

    with opened() as paths:
        found = world_of(job, NO_NIGHT, NOON, frozenset(), job.read_seal)
        find_inputs(job.location, DAY, read=job.read_seal)

    seals = Counter(path for path in paths if f"/{SEALS}/date=" in path and path.endswith(".json"))
    assert len(found.journals) == len(seals) == 3
    assert set(seals.values()) == {1}


def test_a_retired_writer_whose_head_is_gone_is_expected_again(tmp_path: Path) -> None:
    archive(tmp_path, received([1]), delivered([1]))
    (writer,) = {each.writer for each in world(tmp_path).heads}
    retire(LocalStorage(tmp_path), writer, "sold", NOON, None)
    assert world(tmp_path).retired == {writer}

    (tmp_path / head_path(writer)).unlink()

    assert not world(tmp_path).retired
