from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.archive.journal.claim_and_removal import claim_journal, discard_journal
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.records import Cell, Rows, pack
from gateway.archive.layout import ACK, DAMAGED, DONE, HOUR, OPEN, SEALS
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.segments.convert import convert, main
from gateway.night.archive.segments.tables import SCHEMA
from gateway.night.archive.verification.verify import verify_day
from tests.archive.journal_files import damaged_journals, journal_path
from tests.archive.samples import DAY, NOON, START, delivered, identity, received
from tests.archived import read_rows, segments

GATEWAY = {"gateway": "edge"}


HEAD = Head("edge", "edge", START, 0, NOON, None, keyed=False)


def journal(root: Path, *records: bytes) -> Path:
    """A journal whose process was killed."""
    path = journal_path(root, "edge", START, 0)
    path.parent.mkdir(parents=True)
    opened = Journal(path, HEAD)
    for record in records:
        opened.append(record, 1, sync=True)
    opened.close()
    return path


def record(*rows: Rows) -> bytes:
    return pack(rows, GATEWAY)


def ids(root: Path) -> list[bytes]:
    return sorted(row["id"] for row in read_rows(root, DAY))


def test_archived_rows_are_read_back(tmp_path: Path) -> None:
    path = journal(
        tmp_path, record(received([1], ("erp", "audit"), payload=b"x", headers={"k": "v"}))
    )

    convert(tmp_path, path)

    (row,) = read_rows(tmp_path, DAY)
    assert row["targets"] == ["erp", "audit"]
    assert row["headers"] == [("k", "v")]
    assert (row["gateway"], row["route"], row["name"]) == ("edge", "orders", "a/b1")
    assert (row["payload"], row["size"], row["source_time"]) == (b"x", 100, None)
    assert row["time"].timestamp() * 1_000_000 == NOON
    assert not path.exists()


def test_rows_are_sorted_and_lie_in_the_hour_of_their_time(tmp_path: Path) -> None:
    rows = [received([3, 1]), delivered([1, 3]), received([2], time=NOON - HOUR)]
    convert(tmp_path, journal(tmp_path, record(*rows)))

    early, late = segments(tmp_path, DAY)
    assert (early.parent.name, late.parent.name) == ("hour=11", "hour=12")
    table = pq.read_table(late, partitioning=None)
    assert table.schema.remove_metadata() == SCHEMA
    assert table.schema.metadata[b"gateway.schema"] == b"5"
    assert table.schema.metadata[b"gateway.journal"] == f"edge-{START}-000000".encode()
    legs = [(row["leg"], row["id"]) for row in table.to_pylist()]
    assert legs == sorted(legs)


def test_converting_again_after_a_crash_gives_the_same_files(tmp_path: Path) -> None:
    path = journal(tmp_path, record(received([1, 2])))
    content = path.read_bytes()
    convert(tmp_path, path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    assert len(before) == 1

    path.write_bytes(content)  # the crash came before the journal was removed
    convert(tmp_path, path)

    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before


@pytest.mark.parametrize("kept", [False, True])
def test_a_crash_before_the_seal_is_repaired(tmp_path: Path, *, kept: bool) -> None:
    path = journal(tmp_path, record(received([1, 2]), delivered([1, 2])))
    content = path.read_bytes()
    convert(tmp_path, path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    (segment,) = segments(tmp_path, DAY)
    (seal,) = (tmp_path / SEALS).rglob("*.json")
    seal.unlink()

    path.write_bytes(content)
    if not kept:
        segment.unlink()
    convert(tmp_path, path)

    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    assert not path.exists()


def test_a_torn_tail_is_cut(tmp_path: Path) -> None:
    path = journal(tmp_path, record(received([1])))
    path.write_bytes(path.read_bytes() + record(received([2]))[:-3])  # killed while it wrote

    conversion = convert(tmp_path, path)

    assert conversion is not None
    assert not conversion.sealed_damages
    assert "torn tail cut at offset" in conversion.report_lines()[0]
    assert ids(tmp_path) == [identity(1)]
    assert not path.exists()


def test_a_damage_in_the_middle_is_reported_and_the_rest_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = record(received([1]))
    bad = bytearray(record(received([2])))
    bad[30] ^= 1
    path = journal(tmp_path, first, bytes(bad), record(received([3])))

    assert main([str(tmp_path)]) == 0

    at = len(HEAD.pack()) + len(first)
    assert f"damaged record skipped at offset {at}, {len(bad)} bytes" in (capsys.readouterr().err)
    assert ids(tmp_path) == [identity(1), identity(3)]
    assert damaged_journals(tmp_path) == [path.with_suffix(DAMAGED)]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param(b"PAR1 something else", "is not a journal", id="another file"),
        pytest.param(
            b"GWJRNL\0\2", "is a journal of version 2; this gateway reads 3", id="earlier version"
        ),
        pytest.param(
            b"GWJRNL\0\4\n", "is a journal of version 4; this gateway reads 3", id="later version"
        ),
    ],
)
def test_a_file_that_is_no_journal_of_this_version_is_set_aside(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    path = journal_path(tmp_path, "edge", START, 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    with pytest.raises(ArchiveError, match=rf"{fault}; it was renamed to \.damaged"):
        convert(tmp_path, path)

    assert damaged_journals(tmp_path) == [path.with_suffix(DAMAGED)]


@pytest.mark.parametrize("size", [0, 5, 8])
def test_a_journal_without_a_record_leaves_nothing(tmp_path: Path, size: int) -> None:
    path = journal(tmp_path)
    path.write_bytes(path.read_bytes()[:size])  # a crash before the first record was complete

    convert(tmp_path, path)

    assert list(path.parent.iterdir()) == []
    assert not (tmp_path / SEALS).exists()
    assert segments(tmp_path, DAY) == []


def test_a_journal_in_use_is_left_alone(tmp_path: Path) -> None:
    path = journal_path(tmp_path, "edge", START, 0)
    path.parent.mkdir(parents=True)
    opened = Journal(path, HEAD)

    assert convert(tmp_path, path) is None
    opened.close()
    assert convert(tmp_path, path) is not None
    assert convert(tmp_path, path) is None  # it is gone


def test_values_that_fit_no_column_become_null_and_are_counted(tmp_path: Path) -> None:
    late = received([1, 2], source_time=2**63, time=2**62)
    conversion = convert(tmp_path, journal(tmp_path, record(late)))

    assert conversion is not None
    assert conversion.lost_values == 2
    assert "no column fits: 2 values" in conversion.report_lines()[0]
    assert conversion.rows == 2  # in the hour of the gateway start


def without(rows: Rows, *names: str) -> Rows:
    common = {name: value for name, value in rows.common.items() if name not in names}
    columns = {name: values for name, values in rows.columns.items() if name not in names}
    return Rows(rows.count, common, columns)


FOREIGN = [
    pytest.param(without(delivered([1]), "time"), id="without-a-required-column"),
    pytest.param(delivered([1], time=cast(int, "noon")), id="no-time"),
    pytest.param(delivered([1], time=1 << 63), id="time-out-of-range"),
    pytest.param(delivered([1], time=True), id="time-is-no-number"),
    pytest.param(delivered([1], route=None), id="null-route"),
    pytest.param(replace(delivered([1]), columns={"id": [7], "name": ["a"]}), id="id-is-a-number"),
    pytest.param(replace(delivered([1]), columns={"id": [b""], "name": [None]}), id="null-name"),
    pytest.param(Rows(1 << 40, {**delivered([1]).common, "id": b"", "name": "a"}), id="too-many"),
    pytest.param(Rows(-1, {**delivered([1]).common, "id": b"", "name": "a"}), id="negative"),
]


@pytest.mark.parametrize("headers", [[None], [["a", "b"]], {"a": [None]}, [1], "a", 7])
def test_headers_that_are_no_map_become_null(tmp_path: Path, headers: object) -> None:
    """Arrow ends the process for some of them."""
    rows = delivered([1], headers=cast(Cell, headers))
    path = journal(tmp_path, record(rows, delivered([2], headers={"a": "b"})))
    command = [sys.executable, "-m", "gateway.night.archive.segments", str(tmp_path), str(path)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own

    assert done.returncode == 0
    assert "no column fits: 1 value" in done.stderr
    assert [row["headers"] for row in read_rows(tmp_path, DAY)] == [None, [("a", "b")]]


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "closed"])
@pytest.mark.parametrize("rows", FOREIGN)
def test_a_record_that_no_gateway_wrote_is_a_damage_and_costs_no_other_row(
    tmp_path: Path, rows: Rows, capsys: pytest.CaptureFixture[str], *, killed: bool
) -> None:
    """Its CRC is right, and its rows fit no segment."""
    path = journal_path(tmp_path, "edge", START, 0)
    path.parent.mkdir(parents=True)
    opened = Journal(path, HEAD)
    for each in (delivered([1]), rows, delivered([2]), rows):
        opened.append(record(each), 1, sync=True)
    if not killed:
        opened.finish(NOON, stopped=True)
    opened.close()

    assert main([str(tmp_path)]) == 0

    assert "damaged record skipped" in capsys.readouterr().err
    assert [row["name"] for row in read_rows(tmp_path, DAY)] == ["a.b1", "a.b2"]
    assert len(damaged_journals(tmp_path)) == 1
    found = verify_day(LocalStorage(tmp_path), DAY, None, journals=tmp_path)
    assert "damaged-journal" in {each.rule for each in found.findings}


def test_a_fault_of_the_converter_leaves_its_journal_and_converts_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = journal(tmp_path, record(delivered([1])))
    second = first.with_name(f"other-{START}-0{OPEN}")
    shutil.copy(journal(tmp_path / "source", record(delivered([2]))), second)
    second.with_suffix(ACK).write_bytes(first.with_suffix(ACK).read_bytes())

    def fail_once(*_: object, **_options: object) -> object:
        monkeypatch.undo()
        raise pa.ArrowInvalid("a broken converter")

    monkeypatch.setattr(pq, "write_table", fail_once)

    assert main([str(tmp_path), str(first), str(second)]) == 1

    assert f"{first}: is not converted: a broken converter" in capsys.readouterr().err
    assert (first.exists(), second.exists()) == (True, False)
    found = verify_day(LocalStorage(tmp_path), DAY, None, journals=tmp_path)
    assert "unconverted-journal" in {each.rule for each in found.findings}


def test_the_converter_prints_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage:" in capsys.readouterr().err


def test_a_leftover_converted_journal_is_removed_and_not_converted_again(tmp_path: Path) -> None:
    path = journal(tmp_path, record(received([1, 2])))
    content = path.read_bytes()
    convert(tmp_path, path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    path.with_suffix(DONE).write_bytes(content[: len(content) // 2])  # a crash while it shrank

    assert main([str(tmp_path)]) == 0

    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    assert not any(path.parent.iterdir())


def test_a_converted_journal_is_removed_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a-1-000000{OPEN}"
    path.write_bytes(bytes(3_500_000))
    sizes: list[int] = []
    done = path.with_suffix(DONE)
    monkeypatch.setattr(
        "gateway.archive.journal.claim_and_removal.sleep",
        lambda _: sizes.append(done.stat().st_size),
    )

    discard_journal(path)

    assert sizes == [2_451_424, 1_402_848, 354_272]
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_another_converter_renamed_is_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = journal(tmp_path, record(received([1, 2])))
    monkeypatch.setattr(fcntl, "flock", lambda *_: path.rename(path.with_suffix(DONE)))

    assert claim_journal(path) is None


def test_a_converted_journal_that_cannot_be_removed_delays_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = journal(tmp_path, record(received([1])))
    path.with_name(f"edge-1-000009{DONE}").mkdir()

    assert main([str(tmp_path)]) == 1

    assert DONE in capsys.readouterr().err
    assert ids(tmp_path) == [identity(1)]


@pytest.mark.parametrize("renamed", [True, False])
def test_a_new_journal_that_a_converter_took_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, renamed: bool
) -> None:
    path = tmp_path / f"edge-1-000000{OPEN}"

    def take(*_: int) -> None:
        if not renamed:
            raise BlockingIOError
        path.rename(path.with_suffix(DONE))

    monkeypatch.setattr(fcntl, "flock", take)

    with pytest.raises(BlockingIOError, match="a converter has the new journal"):
        Journal(path, HEAD)

    assert not path.exists()
