"""The start of the converter process: its command, its priority and its process group."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.archive.journal.claim_and_removal import claim_journal
from gateway.archive.journal.converter_process import Converter
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journal_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.seal_key import KEY_VARIABLE, PREVIOUS_KEY_VARIABLE, SealKey
from gateway.night.archive.segments import convert
from tests.archive.journal_files import journal_path
from tests.archive.samples import QUICK, START, put, received
from tests.waiting import PATIENCE


class Started(subprocess.Popen[str]):
    """A stand-in for the converter that records its command, session and process group."""

    seen: tuple[list[str], int, int]
    environment: Mapping[str, str]

    def __init__(self, command: list[str], *, env: Mapping[str, str], **options: object) -> None:
        Started.environment = env
        super().__init__(["sleep", "60"], **options)  # type: ignore[call-overload]
        Started.seen = (command, os.getsid(self.pid), os.getpgid(self.pid) - self.pid)
        self.kill()


@pytest.mark.parametrize(
    ("waiting", "size", "awaited", "nice"),
    [
        pytest.param(1, 64 << 20, False, True, id="messages-first"),
        pytest.param(4, 64 << 20, False, True, id="a-few"),
        pytest.param(40, 4 << 20, False, True, id="many-short-ones"),
        pytest.param(5, 64 << 20, False, False, id="they-fill-the-disk"),
        pytest.param(1, 64 << 20, True, False, id="a-stop-waits"),
    ],
)
def test_the_converter_has_low_priority_until_journals_pile_up_or_a_stop_waits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    waiting: int,
    size: int,
    awaited: bool,
    nice: bool,
) -> None:
    monkeypatch.setattr(subprocess, "Popen", Started)
    journal_folder(tmp_path).mkdir(parents=True)
    paths = [journal_path(tmp_path, "here", 1, number) for number in range(waiting)]
    for path in paths:
        path.touch()
        os.truncate(path, size)  # without a byte on the disk

    made = Converter(ArchiveLocation(tmp_path, ""))
    made.is_awaited = awaited
    made.add(paths)
    for path in paths:
        path.unlink()
    made.finish(PATIENCE)

    command, session, group = Started.seen
    assert ("--nice" in command) is nice
    assert command[-waiting:] == [str(path) for path in paths]
    assert session == os.getsid(0), "a session of its own has its own share of the cores"
    assert group == 0, "an interrupt at the terminal would reach it"


def test_the_converter_gets_the_keys_of_its_gateway_and_of_no_other_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key before a change proves what it signed."""
    monkeypatch.setattr(subprocess, "Popen", Started)
    for name in (KEY_VARIABLE, PREVIOUS_KEY_VARIABLE):
        monkeypatch.setenv(name, "of another program")
    for key, keys in (
        (None, [None, None]),
        (SealKey.of(b"new", None), ["new", None]),
        (SealKey.of(b"new", b"old"), ["new", "old"]),
    ):
        made = Converter(ArchiveLocation(tmp_path, ""), None, key)
        made.start_without_journals()
        made.finish(PATIENCE)

        found = [Started.environment.get(name) for name in (KEY_VARIABLE, PREVIOUS_KEY_VARIABLE)]
        assert found == keys


def test_a_stop_does_not_wait_for_a_converter_of_low_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine it would wait for the processor until its time is over."""
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    put(writer, received([1]))
    monkeypatch.setattr(subprocess, "Popen", Started)

    writer.close()

    assert "--nice" not in Started.seen[0]


def test_the_converter_applies_its_nice_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied: list[int] = []
    monkeypatch.setattr(os, "nice", applied.append)

    assert convert.main([str(tmp_path), "--nice", "19"]) == 0

    assert applied == [19]


class Counted(Converter):
    """Ends the work of another converter before its own third start."""

    other: int
    starts = ends = 0

    def _start(self) -> None:
        self.starts += 1
        if self.starts == 3:
            os.close(self.other)
        super()._start()

    def _collect(self, child: subprocess.Popen[bytes]) -> None:
        self.ends += 1
        super()._collect(child)


def test_a_journal_that_another_converter_has_is_awaited(tmp_path: Path) -> None:
    path = journal_path(tmp_path, "edge", 1, 0)
    path.parent.mkdir(parents=True)
    path.touch()
    other = claim_journal(path)
    assert other is not None
    converter = Counted(ArchiveLocation(tmp_path))
    converter.other = other
    converter.add([path])
    while not converter.ends:
        converter.poll()
    for _ in range(100):
        converter.poll()
    assert converter.starts == 1, "a process for each look would keep a core busy"

    assert converter.finish(PATIENCE) == []

    assert converter.starts == 3
    assert not path.exists()
