"""A journal, a head or a row that somebody removed or changed is found, now and for ever."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.archive.heads import head_path
from gateway.archive.journal import local_head
from gateway.archive.journal.ends import read_head
from gateway.archive.journal.records import Rows, pack
from gateway.archive.layout import ACK, HOUR
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.open_archive import open_archive
from gateway.night.archive.segments.convert import convert_abandoned
from gateway.night.archive.verification.verify import verify_archive
from tests.archive.journal.processes import (
    KEY,
    Process,
    convert_all,
    head_of,
    no_converter,
    numbers,
    verified,
)
from tests.archive.journal_files import damaged_journals
from tests.archive.samples import NOON, QUICK, START, received
from tests.night.archive.verification.chained import errors

__all__ = ["no_converter"]  # a fixture


@pytest.mark.parametrize("stopped", [True, False])
def test_a_lost_head_begins_a_new_chain(tmp_path: Path, *, stopped: bool) -> None:
    process = Process(tmp_path)
    process.write(1)
    if stopped:
        process.stop()
    else:
        process.kill()
    convert_all(tmp_path)
    (tmp_path / head_path("edge")).unlink()
    assert (
        errors(verified(tmp_path)) == ["missing-head"]
        if stopped
        else ["missing-head", "open-chain"]
    )
    restarted = Process(tmp_path, START + 1, time=NOON + HOUR)
    restarted.stop()
    convert_all(tmp_path)

    assert errors(verified(tmp_path)) == ["new-chain"]


def test_a_night_converts_the_killed_journal_of_a_keyed_gateway(tmp_path: Path) -> None:
    """As after the takeover of a pair: the dead instance does not start before the night."""
    process = Process(tmp_path, options=replace(QUICK, seal_key=KEY))
    process.write(1, 2)
    path = process.kill()

    for other in (None, b"another key"):
        convert_abandoned(open_archive(tmp_path, other))
        assert path.exists()
    convert_abandoned(open_archive(tmp_path, KEY))

    assert not path.exists()
    assert numbers(tmp_path) == [1, 2]
    assert "unconverted-journal" not in errors(verified(tmp_path, KEY))


def test_a_forged_key_of_a_journal_proves_nothing(tmp_path: Path) -> None:
    """A head with a foreign mac, as of a journal that was moved here from another archive."""
    process = Process(tmp_path, options=replace(QUICK, seal_key=KEY))
    process.write(1)
    path = process.kill()
    content = path.read_bytes()
    head = read_head(content)
    assert head is not None
    records = content.removeprefix(head.pack())
    path.write_bytes(replace(head, opened=head.opened + 1).pack() + records)

    convert_abandoned(open_archive(tmp_path, KEY))

    assert path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"journal": 1}', b"[" * 100_000])
def test_a_damaged_head_is_an_error_also_after_the_next_start(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    Process(tmp_path).stop()
    convert_all(tmp_path)
    (tmp_path / head_path("edge")).write_bytes(content)
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
    assert local_head.number_of(later.closed) == 1

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

    assert "missing-seal" in errors(verified(tmp_path))  # only by the chain file

    Process(tmp_path, START + 1).stop()
    convert_all(tmp_path)
    assert errors(verified(tmp_path)) == ["missing-seal"]
