"""The head of a writer, and the chain of its journals, through kills, full disks and lost files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.archive.heads import StoredHead, head_path, read_head
from gateway.archive.journal import head_file, rolling
from gateway.archive.journal.file import Journal
from gateway.archive.journal.head_file import HeadFile
from gateway.archive.journal.records import Rows, pack
from gateway.archive.journal.rolling import ArchiveOptions, RollingJournal, Writer
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import ACK, HOUR, SEALS, journals, segments
from gateway.archive.location import ArchiveLocation
from gateway.archive.lookup.reader import read_rows
from gateway.archive.seals.seal import HandedOver, Seal
from gateway.archive.seals.store import read_seals
from gateway.archive.segments import convert
from gateway.archive.signed_json import Term
from gateway.archive.storage import LocalStorage
from gateway.archive.verification.verify import Verified, verify_archive, verify_day
from gateway.errors import ArchiveError
from tests.archive.journal_files import damaged_journals
from tests.archive.samples import DAY, NOON, QUICK, START, delivered, identity, noon, put, received
from tests.archive.verification.chained import errors, warnings

KEY = b"a key of the seals"
MIDNIGHT = NOON + 12 * HOUR
IDLE = replace(QUICK, close_seconds=0)  # its converter is killed before it begins


class NoConverter:
    """Converts nothing: the tests do it, and fail at one of its steps."""

    busy, held_bytes = False, 0

    def __init__(self, *_: object) -> None: ...

    def add(self, _: object) -> None: ...

    def poll(self) -> None: ...

    def finish(self, _: float) -> list[Path]:
        return []


@dataclass
class Process:
    """A gateway's journal without its threads, at a clock that the test sets."""

    root: Path
    start: int = START
    options: ArchiveOptions = QUICK
    replay: bool = False
    time: int = NOON
    journal: RollingJournal = field(init=False)

    def __post_init__(self) -> None:
        writer = Writer("edge", self.start, self.replay, lambda: self.time)
        self.journal = RollingJournal(ArchiveLocation(self.root), writer, self.options, Journal)

    def write(self, *numbers: int) -> None:
        rows = received(numbers, time=self.time)
        rows = Rows(rows.count, {**rows.common, "gateway": "edge"}, rows.columns)
        self.journal.write(pack([rows]), len(numbers))

    @property
    def path(self) -> Path:
        assert self.journal._journal is not None  # noqa: SLF001  # the file of this process
        return self.journal._journal.path  # noqa: SLF001

    def kill(self) -> Path:
        """End the process: its locks are released, and nothing else happens."""
        opened, path = self.journal._journal, self.path  # noqa: SLF001
        assert opened is not None
        os.close(opened._file)  # noqa: SLF001
        os.close(opened._acknowledged)  # noqa: SLF001
        self.journal._lock.close()  # noqa: SLF001
        return path

    def stop(self) -> None:
        self.journal.close(0)


@pytest.fixture(autouse=True)
def no_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "Converter", NoConverter)


def convert_all(root: Path, key: bytes | None = None) -> None:
    for path in journals(root):
        convert.convert(root, path, key=key)


def verified(root: Path, key: bytes | None = None) -> Verified:
    today = DAY + timedelta(days=3)
    return verify_day(LocalStorage(root), DAY, key, journals=root, today=today)


def head_of(root: Path) -> StoredHead:
    return read_head(root, "edge")


def numbers(root: Path) -> list[int]:
    return sorted(int.from_bytes(row["id"][8:], "big") for row in read_rows(root, DAY))


def sequences(root: Path) -> list[tuple[int, str]]:
    found = [stored.seal for stored in read_seals(LocalStorage(root), DAY)]
    return [(seal.sequence, seal.end.value) for seal in found]  # type: ignore[union-attr]


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
        patch.setattr(head_file, "write_head", no_space)  # a full disk ends the same way
        process.stop()
    assert head_of(tmp_path) == before

    restarted = Process(tmp_path, START + 1)
    restarted.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


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
    assert head_file.last_link(tmp_path, "edge") == head.closed


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


@pytest.mark.parametrize("stopped", [True, False])
def test_a_lost_head_begins_a_new_chain(tmp_path: Path, *, stopped: bool) -> None:
    process = Process(tmp_path)
    process.write(1)
    if stopped:
        process.stop()
    else:
        process.kill()
    convert_all(tmp_path)
    head_path(tmp_path, "edge").unlink()
    assert (
        errors(verified(tmp_path)) == ["missing-head"]
        if stopped
        else ["missing-head", "open-chain"]
    )
    restarted = Process(tmp_path, START + 1, time=NOON + HOUR)
    restarted.stop()
    convert_all(tmp_path)

    assert errors(verified(tmp_path)) == ["new-chain"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"journal": 1}', b"[" * 100_000])
def test_a_damaged_head_is_an_error_also_after_the_next_start(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    Process(tmp_path).stop()
    convert_all(tmp_path)
    head_path(tmp_path, "edge").write_bytes(content)
    assert "forged-head" in errors(verified(tmp_path))

    Process(tmp_path, START + 1, time=NOON + HOUR).stop()
    convert_all(tmp_path)

    assert "edge.json: " in caplog.text
    found = verified(tmp_path)
    assert errors(found) == ["new-chain", "forged-head"]
    assert "_heads/edge.damaged" in {each.place for each in found.findings}


def test_an_older_journal_never_replaces_a_later_one_in_the_head(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.write(1)
    process.kill()
    Process(tmp_path, START + 1, time=NOON + HOUR).stop()
    later = head_of(tmp_path).head
    assert later is not None
    assert head_file.number_of(later.closed) == 1

    convert_all(tmp_path)

    assert head_of(tmp_path).head == later


def remove(path: Path) -> None:
    path.unlink()
    path.with_suffix(ACK).unlink()


def remove_without_ack(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_suffix(".old"))


def cut_to_magic(path: Path) -> None:
    os.truncate(path, 8)


def cut_to_magic_without_ack(path: Path) -> None:
    cut_to_magic(path)
    path.with_suffix(ACK).unlink()


def empty_without_ack(path: Path) -> None:
    os.truncate(path, 0)
    path.with_suffix(ACK).unlink()


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
@pytest.mark.parametrize(
    "lose",
    [remove, remove_without_ack, rename, cut_to_magic, cut_to_magic_without_ack, empty_without_ack],
)
def test_the_lost_journal_of_a_killed_gateway_is_an_error_for_ever(
    tmp_path: Path, lose: Callable[[Path], None], key: bytes | None
) -> None:
    options = replace(QUICK, seal_key=key)
    process = Process(tmp_path, options=options)
    process.write(1)
    lose(process.kill())
    with suppress(ArchiveError):
        convert_all(tmp_path, key)  # as a night does before the next start
    whole = verify_archive(LocalStorage(tmp_path), key, journals=tmp_path)
    assert errors(whole), "an archive without a date has a writer all the same"
    named = {"missing-journal", "missing-seal", "torn-journal"}
    assert named & set(errors(verified(tmp_path, key)))

    for number in (1, 2):
        restarted = Process(tmp_path, START + number, options, time=NOON + number * HOUR)
        restarted.write(number + 1)
        restarted.stop()
        with suppress(ArchiveError):
            convert_all(tmp_path, key)

    assert named & set(errors(verified(tmp_path, key)))
    assert numbers(tmp_path) == [2, 3]


def test_a_head_that_cannot_be_written_opens_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(tmp_path, options=replace(QUICK, segment_bytes=1))
    process.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(head_file, "write_head", no_space)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                process.journal.maintain()
            with pytest.raises(OSError, match="No space left"):
                process.write(2)
    assert len(journals(tmp_path)) == 1

    process.write(2)
    process.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()
    assert numbers(tmp_path) == [1, 2]


def test_a_full_disk_delays_the_trailer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(tmp_path, options=replace(QUICK, segment_bytes=1))
    process.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", no_space)
        with pytest.raises(OSError, match="No space left"):
            process.journal.maintain()
    process.write(2)
    process.journal.maintain()
    process.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()
    assert numbers(tmp_path) == [1, 2]


def test_a_disk_that_is_full_at_the_stop_ends_as_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process(tmp_path)
    process.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", no_space)
        process.stop()
    Process(tmp_path, START + 1).stop()
    convert_all(tmp_path)

    assert "the last journal has no trailer" in caplog.text
    assert (errors(verified(tmp_path)), numbers(tmp_path)) == ([], [1])


def test_a_disk_that_is_full_at_a_roll_opens_the_next_journal_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(tmp_path, options=replace(QUICK, segment_bytes=1))
    process.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "__init__", no_space)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                process.journal.maintain()
    process.write(2)
    process.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()
    assert sequences(tmp_path) == [(0, "closed"), (1, "stopped")]
    assert numbers(tmp_path) == [1, 2]


def test_a_full_disk_at_the_start_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", no_space)
        with pytest.raises(ArchiveError, match=r"cannot be written: .*No space left"):
            Process(tmp_path)
    assert [path.name for path in (tmp_path / ".journal").iterdir()] == ["edge.lock"]
    assert head_of(tmp_path).head is None

    Process(tmp_path).stop()


def cut_last_record(path: Path) -> None:
    os.truncate(path, path.stat().st_size - len(pack([one(3)])))


def damage_last_record(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)


def tear_last_record(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def forget_acknowledged(path: Path) -> None:
    path.with_suffix(ACK).unlink()


def damage_head(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)


def one(number: int) -> Rows:
    rows = received([number])
    return Rows(1, {**rows.common, "gateway": "edge"}, rows.columns)


@pytest.mark.parametrize(
    ("change", "rule", "left"),
    [
        pytest.param(cut_last_record, "torn-journal", [1, 2], id="cut-at-a-record"),
        pytest.param(damage_last_record, "torn-journal", [1, 2], id="damaged-last-record"),
        pytest.param(tear_last_record, "torn-journal", [1, 2], id="torn-acknowledged"),
        pytest.param(empty, "torn-journal", [], id="empty"),
        pytest.param(forget_acknowledged, "damaged-journal", [1, 2, 3], id="no-acknowledged"),
        pytest.param(damage_head, "damaged-journal", [1, 2, 3], id="damaged-head"),
    ],
)
def test_lost_acknowledged_rows_of_a_killed_process_are_found(
    tmp_path: Path, change: Callable[[Path], None], rule: str, left: list[int]
) -> None:
    process = Process(tmp_path)
    for number in (1, 2, 3):
        process.write(number)
    change(process.kill())
    Process(tmp_path, START + 1).stop()
    convert_all(tmp_path)

    assert rule in errors(verified(tmp_path))
    assert numbers(tmp_path) == left
    assert len(damaged_journals(tmp_path)) == 1


def remove_middle(content: bytes) -> bytes:
    record = pack([one(2)])
    assert content.count(record) == 1
    return content.replace(record, b"")


def repeat_middle(content: bytes) -> bytes:
    record = pack([one(2)])
    return content.replace(record, record + record)


def swap(content: bytes) -> bytes:
    return content.replace(pack([one(2)]), pack([one(7)]))


def add_behind(content: bytes) -> bytes:
    return content + pack([one(7)])


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
@pytest.mark.parametrize("change", [remove_middle, repeat_middle, swap, add_behind])
def test_a_closed_journal_that_was_changed_is_found(
    tmp_path: Path, key: bytes | None, change: Callable[[bytes], bytes]
) -> None:
    process = Process(tmp_path, options=replace(QUICK, seal_key=key))
    for number in (1, 2, 3):
        process.write(number)
    path = process.path
    process.stop()
    path.write_bytes(change(path.read_bytes()))
    Process(tmp_path, START + 1, replace(QUICK, seal_key=key)).stop()
    convert_all(tmp_path, key)

    assert not verified(tmp_path, key).complete


def test_a_journal_that_was_removed_is_found(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.write(1)
    path = process.path
    process.stop()
    path.unlink()

    assert "missing-seal" in errors(verified(tmp_path))  # by the chain file alone

    Process(tmp_path, START + 1).stop()
    convert_all(tmp_path)
    assert errors(verified(tmp_path)) == ["missing-seal"]


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
    other = HeadFile(tmp_path, "edge", "edge@b", instance="b")

    assert head_file.last_end(tmp_path, "edge") == NOON
    assert head_file.last_link(tmp_path, "edge@b") is None
    found = other.newest()
    assert found is not None
    assert (found.writer, found.instance, found.lease) == ("edge@a", "a", lease)
    (journal,) = journals(tmp_path)
    convert.convert(tmp_path, journal)
    (seal,) = (each.seal for each in read_seals(LocalStorage(tmp_path), DAY))
    assert isinstance(seal, Seal)
    assert (seal.writer, seal.gateway, seal.lease) == ("edge@a", "edge", lease)
    assert seal.handed == HandedOver(NOON, NOON)
