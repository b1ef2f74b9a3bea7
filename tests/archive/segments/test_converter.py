"""The converter as a process beside the messages: how it is started, and for whom it gives way."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gateway.archive.layout import journal_folder, journal_path
from gateway.archive.location import Place
from gateway.archive.segments import convert
from gateway.archive.segments.converter import Conversions
from tests.waiting import PATIENCE


class Started(subprocess.Popen[str]):
    """A converter that is held before it does anything, so that it can be looked at."""

    seen: tuple[list[str], int, int]

    def __init__(self, command: list[str], **options: object) -> None:
        super().__init__(["sleep", "60"], **options)  # type: ignore[call-overload]
        Started.seen = (command, os.getsid(self.pid), os.getpgid(self.pid) - self.pid)
        self.kill()


@pytest.mark.parametrize(
    ("waiting", "nice"),
    [
        pytest.param(1, True, id="the messages go first"),
        pytest.param(4, True, id="a few are no trouble"),
        pytest.param(5, False, id="many fill the disk"),
    ],
)
def test_the_converter_gives_way_until_journals_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: int, nice: bool
) -> None:
    monkeypatch.setattr(subprocess, "Popen", Started)
    journal_folder(tmp_path).mkdir(parents=True)
    paths = [journal_path(tmp_path, "here", 1, number) for number in range(waiting)]

    made = Conversions(Place(tmp_path, ""))
    made.add(paths)
    made.finish(PATIENCE)

    command, session, group = Started.seen
    assert ("--nice" in command) is nice
    assert command[-waiting:] == [str(path) for path in paths]
    assert session == os.getsid(0), "a session of its own has its own share of the cores"
    assert group == 0, "an interrupt at the terminal would reach it"


def test_it_is_as_nice_as_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(os, "nice", told.append)

    assert convert.main([str(tmp_path), "--nice", "19"]) == 0

    assert told == [19]
