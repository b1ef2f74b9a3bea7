"""The head of a writer, and the chain of its journals, through kills and conversions."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.archive.journal import local_head
from gateway.archive.journal.local_head import LocalHead
from gateway.archive.journal.records import pack
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import ACK, HOUR, SEALS, journals
from gateway.archive.signed_json import Term
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.seals.seal import HandedOver, Seal
from gateway.night.archive.seals.store import read_seals
from gateway.night.archive.segments import convert
from tests.archive.journal.processes import (
    IDLE,
    KEY,
    MIDNIGHT,
    Process,
    convert_all,
    head_of,
    no_converter,
    numbers,
    sequences,
    verified,
)
from tests.archive.journal.test_full_disk import no_space
from tests.archive.journal_files import damaged_journals
from tests.archive.no_converter import NoConverter
from tests.archive.samples import DAY, NOON, QUICK, START, delivered, identity, noon, put, received
from tests.archived import read_rows, segments
from tests.night.archive.verification.chained import errors, warnings

__all__ = ["no_converter"]  # a fixture


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
def test_the_chain_goes_on_over_restarts(tmp_path: Path, key: bytes | None) -> None:
    options = replace(QUICK, seal_key=key)
    for number in range(3):
        process = Process(tmp_path, START + number, options, time=NOON + number * HOUR)
        process.write(number)
        process.stop()
        convert_all(tmp_path, key)

    found = verified(tmp_path, key)

    assert found.findings == ()
    assert [(pause.begin, pause.end) for pause in found.pauses] == [
        (NOON, NOON + HOUR),
        (NOON + HOUR, NOON + 2 * HOUR),
        (NOON + 2 * HOUR, MIDNIGHT),
    ]
    assert sequences(tmp_path) == [(0, "stopped"), (1, "stopped"), (2, "stopped")]
    assert numbers(tmp_path) == [0, 1, 2]


def test_a_second_gateway_of_the_name_does_not_start(tmp_path: Path) -> None:
    first = ArchiveWriter(tmp_path, "edge", START, IDLE, clock=noon)
    before = sorted(path.name for path in (tmp_path / ".journal").iterdir())

    with pytest.raises(ArchiveError, match="another process writes with this gateway's name; give"):
        ArchiveWriter(tmp_path, "edge", START + 1, IDLE, clock=noon)

    assert sorted(path.name for path in (tmp_path / ".journal").iterdir()) == before
    first.close()
    ArchiveWriter(tmp_path, "edge", START + 2, IDLE, clock=noon).close()


def test_a_replaying_process_runs_beside_its_gateway(tmp_path: Path) -> None:
    gateway = Process(tmp_path)
    replay = Process(tmp_path, START + 1, replay=True)
    gateway.write(1)
    replay.write(2)
    replay.stop()
    gateway.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()
    assert [path.name.split("-")[0] for path in segments(tmp_path, DAY)] == ["edge", "edge~replay"]


def test_a_gateway_converts_the_journal_of_a_killed_replay(tmp_path: Path) -> None:
    running = Process(tmp_path, START + 1, replay=True)
    left: list[Path] = []
    added: list[list[Path]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoConverter, "add", lambda _, paths: added.append(list(paths)))
        Process(tmp_path, START + 2).stop()
        assert running.path not in [path for paths in added for path in paths]
        running.write(1)
        left = [running.kill()]
        added.clear()
        Process(tmp_path, START + 3).stop()
    assert left[0] in added[0]
    convert_all(tmp_path)

    assert errors(verified(tmp_path)) == []


def test_an_idle_gateway_closes_its_journal_after_midnight(tmp_path: Path) -> None:
    process = Process(tmp_path, time=MIDNIGHT - 30_000_000)
    process.journal.maintain()
    assert len(journals(tmp_path)) == 1
    assert process.journal.next_maintenance() == 30

    process.time = MIDNIGHT + 1
    process.journal.maintain()
    assert len(journals(tmp_path)) == 2
    convert.convert(tmp_path, journals(tmp_path)[0])

    assert verified(tmp_path).findings == ()
    assert segments(tmp_path, DAY) == []
    process.stop()


def test_the_first_journal_of_an_archive_is_open_and_no_seal_is_missing(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.write(1)

    found = verified(tmp_path)

    assert (errors(found), warnings(found)) == ([], ["open-journal"])
    assert "ask again" in found.findings[0].text
    process.stop()


def test_an_open_journal_of_a_running_gateway_is_a_warning(tmp_path: Path) -> None:
    process = Process(tmp_path, options=replace(QUICK, segment_bytes=1))
    process.write(1)
    process.time += HOUR
    process.journal.maintain()
    convert.convert(tmp_path, journals(tmp_path)[0])
    process.write(2)

    found = verified(tmp_path)
    assert (errors(found), warnings(found)) == ([], ["open-journal"])
    assert [each.live for each in found.journals] == [True]

    process.kill()
    assert errors(verified(tmp_path)) == ["unconverted-journal", "open-chain"]


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
def test_a_kill_leaves_no_gap(tmp_path: Path, key: bytes | None) -> None:
    options = replace(QUICK, seal_key=key)
    process = Process(tmp_path, options=options)
    process.write(1, 2)
    path = process.kill()
    with path.open("ab") as file:
        file.write(pack([received([3])])[:-5])  # not acknowledged
    restarted = Process(tmp_path, START + 1, options, time=NOON + HOUR)
    restarted.write(4)
    restarted.stop()
    convert_all(tmp_path, key)

    found = verified(tmp_path, key)

    assert (errors(found), warnings(found)) == ([], ["killed-journal"])
    assert sequences(tmp_path) == [(0, "killed"), (1, "stopped")]
    assert numbers(tmp_path) == [1, 2, 4]
    assert damaged_journals(tmp_path) == []


def test_a_kill_between_trailer_and_head_leaves_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(tmp_path)
    process.write(1)
    before = head_of(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(local_head, "write_head", no_space)  # a full disk ends the same way
        process.stop()
    assert head_of(tmp_path) == before

    restarted = Process(tmp_path, START + 1)
    restarted.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()


@pytest.mark.parametrize("step", ["write_rows", "write_seal", "note_end", "discard_journal"])
def test_a_conversion_that_fails_at_any_step_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    process = Process(tmp_path)
    process.write(1)
    path = process.kill()
    with monkeypatch.context() as patch:
        patch.setattr(convert, step, no_space)
        with pytest.raises(OSError, match="No space left"):
            convert.convert(tmp_path, path)

    restarted = Process(tmp_path, START + 1, time=NOON + HOUR)  # before the conversion, or after it
    convert_all(tmp_path)
    restarted.stop()
    convert_all(tmp_path)

    found = verified(tmp_path)
    assert (errors(found), warnings(found)) == ([], ["killed-journal"])
    assert numbers(tmp_path) == [1]
    assert journals(tmp_path) == []


def test_a_sealed_journal_is_not_converted_again(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.write(1)
    path = process.kill()
    content, acknowledged = path.read_bytes(), path.with_suffix(ACK).read_bytes()
    convert_all(tmp_path)
    (segment,) = segments(tmp_path, DAY)
    segment.unlink()  # a compaction replaced it

    path.write_bytes(content)  # a crash came before the journal was removed
    path.with_suffix(ACK).write_bytes(acknowledged)
    convert_all(tmp_path)

    assert segments(tmp_path, DAY) == []
    assert journals(tmp_path) == []


def test_a_conversion_before_the_restart_leaves_no_gap(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.write(1)
    process.kill()
    convert_all(tmp_path)
    restarted = Process(tmp_path, START + 1, time=NOON + HOUR)
    restarted.stop()
    convert_all(tmp_path)

    assert sequences(tmp_path) == [(0, "killed"), (1, "stopped")]
    assert errors(verified(tmp_path)) == []


def test_a_converter_that_frees_the_last_journal_meanwhile_leaves_no_gap(tmp_path: Path) -> None:
    """The gateway may have opened the file before the converter cuts it, and read it after."""
    process = Process(tmp_path)
    process.write(1)
    process.stop()
    (path,) = journals(tmp_path)
    head = head_of(tmp_path).head

    os.truncate(path, path.stat().st_size - 1)

    assert head is not None
    assert head.closed is not None
    assert local_head.last_link(tmp_path, "edge") == head.closed


def test_a_kill_before_the_first_record_leaves_nothing(tmp_path: Path) -> None:
    for start in range(3):
        process = Process(tmp_path, START + start)
        process.kill()
    last = Process(tmp_path, START + 3)
    last.stop()
    convert_all(tmp_path)

    found = verified(tmp_path)
    assert (errors(found), set(warnings(found))) == ([], {"killed-journal"})
    assert [number for number, _ in sequences(tmp_path)] == [0, 1, 2, 3]
    assert [path.name for path in (tmp_path / ".journal").iterdir()] == ["edge.lock"]


def test_a_writer_seals_what_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the real converter, which gets the key by its environment
    options = replace(QUICK, seal_key=KEY)
    writer = ArchiveWriter(tmp_path, "edge", START, options, clock=noon)
    put(writer, received([1]))
    writer.close()

    assert verified(tmp_path, KEY).findings == ()
    (path,) = (tmp_path / SEALS).rglob("*.json")
    assert b'"keyed":true' in path.read_bytes()
    assert identity(1) in [row["id"] for row in read_rows(tmp_path, DAY)]
    assert KEY.decode() not in repr(options)


def test_an_instance_continues_where_the_one_before_it_ended(tmp_path: Path) -> None:
    """In one folder it takes over the times and the sources, and begins its own chain."""
    lease = Term(7, NOON, 10)
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK, instance="a", lease=lease, clock=noon)
    put(writer, received([1]), delivered([1]))
    writer.close()
    other = LocalHead(tmp_path, "edge", "edge@b", instance="b")

    assert local_head.last_end(tmp_path, "edge") == NOON
    assert local_head.last_link(tmp_path, "edge@b") is None
    found = other.newest()
    assert found is not None
    assert (found.writer, found.instance, found.lease) == ("edge@a", "a", lease)
    (journal,) = journals(tmp_path)
    convert.convert(tmp_path, journal)
    (seal,) = (each.seal for each in read_seals(LocalStorage(tmp_path), DAY))
    assert isinstance(seal, Seal)
    assert (seal.writer, seal.gateway, seal.lease) == ("edge@a", "edge", lease)
    assert seal.handed == HandedOver(NOON, NOON, NOON)
