"""Converter processes with long reports, many journals or a fatal one, and killed ones."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from gateway.archive.journal.converter_process import Converter
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.records import Rows, pack
from gateway.archive.layout import journal_folder
from gateway.archive.location import ArchiveLocation
from tests.archive.journal_files import journal_path
from tests.archive.samples import START, received
from tests.waiting import PATIENCE, until

_PIPE = 64 << 10  # bytes that a pipe of Linux holds


def test_a_long_report_does_not_stop_the_converter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk fails each of many journals: the report is longer than a pipe."""
    root = tmp_path.joinpath(*["long" * 50] * 8)
    journal_folder(root).mkdir(parents=True)
    number = 2 * _PIPE // len(str(root))
    paths = [journal_path(root, "edge", 1, each) for each in range(number)]
    for path in paths:
        path.write_bytes(b"no journal")
    converter = Converter(ArchiveLocation(root))
    converter.add(paths)

    def ended() -> bool:
        converter.poll()
        return not converter.busy

    try:
        until(ended)
    finally:
        converter.finish(0)

    assert f"{paths[-1].name}: is not a journal" in caplog.text


class Killed(subprocess.Popen[str]):
    """A converter that the kernel kills, as it does for lack of memory."""

    def __init__(self, _command: list[str], **options: object) -> None:
        super().__init__(["sleep", "60"], **options)  # type: ignore[call-overload]
        os.kill(self.pid, signal.SIGKILL)


def test_a_killed_converter_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(subprocess, "Popen", Killed)
    path = journal_path(tmp_path, "edge", 1, 0)
    path.parent.mkdir(parents=True)
    path.touch()
    converter = Converter(ArchiveLocation(tmp_path))
    converter.add([path])

    assert converter.finish(PATIENCE) == [path]

    assert "killed" in caplog.text
    assert "SIGKILL" in caplog.text


class Limited(subprocess.Popen[str]):
    """A program that ends at once, with the arguments of the converter."""

    def __init__(self, command: list[str], **options: object) -> None:
        super().__init__(["true", *command[1:]], **options)  # type: ignore[call-overload]


def test_any_number_of_journals_is_given_to_converters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A storage that is away for weeks leaves more journals than a command line can name."""
    monkeypatch.setattr(subprocess, "Popen", Limited)
    size = len(str(journal_path(tmp_path, "edge", 1, 0)))
    number = os.sysconf("SC_ARG_MAX") // size
    converter = Converter(ArchiveLocation(tmp_path))
    converter.add(journal_path(tmp_path, "edge", 1, each) for each in range(number))

    assert converter.finish(PATIENCE) == []

    assert not caplog.text


def closed_journal(root: Path, number: int, rows: Rows) -> Path:
    path = journal_path(root, "edge", START, number)
    journal = Journal(path, Head("edge", "edge", START, number, START, None, keyed=False))
    journal.append(pack([rows], {"gateway": "edge"}), rows.count, sync=False)
    journal.finish(START, stopped=True)
    journal.close()
    return path


class Aborted(subprocess.Popen[str]):
    """The converter, which a fault in a library ends when it comes to the journal 0."""

    def __init__(self, command: list[str], **options: object) -> None:
        fatal = [place for place, word in enumerate(command) if word.endswith("-000000.open")]
        if fatal:
            before = command[: fatal[0]]  # without a journal it would convert all
            work = '"$@"; kill -ABRT $$' if before[-1].endswith(".open") else "kill -ABRT $$"
            command = ["sh", "-c", work, "sh", *before]
        super().__init__(command, **options)  # type: ignore[call-overload]


def test_a_journal_that_ends_the_converter_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(subprocess, "Popen", Aborted)
    journal_folder(tmp_path).mkdir()
    intact = received([1])
    fatal = closed_journal(tmp_path, 0, intact)
    others = [closed_journal(tmp_path, number, intact) for number in (1, 2)]
    converter = Converter(ArchiveLocation(tmp_path))
    converter.add([fatal, *others])

    def converted() -> bool:
        converter.poll()
        return not any(path.exists() for path in others)

    try:
        until(converted)
    finally:
        converter.finish(0)

    assert fatal.exists()
    assert converter.failed >= 1
    assert "SIGABRT" in caplog.text


class Slow(subprocess.Popen[str]):
    """A converter that needs longer than a stop has."""

    def __init__(self, _command: list[str], **options: object) -> None:
        super().__init__(["sleep", "60"], **options)  # type: ignore[call-overload]


def test_a_converter_that_the_gateway_ends_is_not_called_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(subprocess, "Popen", Slow)
    path = journal_path(tmp_path, "edge", 1, 0)
    path.parent.mkdir(parents=True)
    path.touch()
    converter = Converter(ArchiveLocation(tmp_path))
    converter.add([path])

    assert converter.finish(0) == [path]

    assert "the next start or night converts the rest" in caplog.text
    assert "SIGKILL" not in caplog.text
