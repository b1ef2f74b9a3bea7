"""Files of a few hundred bytes that stand for gigabytes are refused by every reader."""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import (
    DICTIONARY,
    HOUR,
    SCHEMA_VERSION,
    day_folder,
    hour_folder,
    staged_path,
)
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import DICTIONARY as DICTIONARY_COLUMNS
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.compaction import merge as merging
from gateway.night.archive.compaction.merge import MergeInput, MergeTask, merge
from gateway.night.archive.lookup.message import message_rows
from gateway.night.archive.lookup.name_lookup import find_name
from gateway.night.archive.lookup.search import ReplayRange, received_rows
from gateway.night.archive.parquet import SETS_KEY, encoded
from gateway.night.archive.segments import reading
from gateway.night.archive.segments.reading import open_parquet
from gateway.night.archive.segments.tables import SCHEMA, schema_of, sort_rows, to_table
from gateway.night.archive.segments.write import VERSION_KEY
from gateway.night.reconcile.input.row_reader import read_beside, read_segment
from tests.archive.samples import DAY, NOON, delivered, identity, received
from tests.archived import read_rows

MAX_MEMORY = 768 << 20  # bytes, with an allowance of 128 MiB that each of three reads may take
MESSAGE = "its values take too much memory"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller bound, so that a test takes less time."""
    for name in ("_ALLOWANCE", "_ARENA"):
        monkeypatch.setattr(reading, name, 128 << 20)


def repeated(rows: int, size: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()).fill_null(0), ["a" * size])


def write(path: Path, parts: Iterable[pa.Table], **options: object) -> Path:
    tables = iter(parts)
    first = next(tables)
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(
        path, first.schema, compression="zstd", store_schema=False, **options
    ) as writer:
        for table in (first, *tables):
            writer.write_table(table, row_group_size=len(table))
    return path


def dictionary(path: Path) -> Path:
    """200,000 times a value of a megabyte: 186 GiB."""
    return write(path, [pa.table({"name": repeated(200_000, 1_000_000)})])


def elements(path: Path) -> Path:
    """One row with a list of 20 million elements: 19 GiB."""
    count = 20_000_000
    values = repeated(count, 1_000)
    return write(path, [pa.table({"targets": pa.ListArray.from_arrays([0, count], values)})])


def prefixes(path: Path) -> Path:
    """500 values, each with the one before it as its prefix: 477 MiB."""
    schema = pa.schema([("reason", pa.string())])
    batch = pa.record_batch([pa.array(["a" * 1_000_000] * 50)], schema=schema)
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False,
        column_encoding={"reason": "DELTA_BYTE_ARRAY"}, data_page_size=1 << 30,
    ) as writer:  # fmt: skip
        for _ in range(10):
            writer.write_batch(batch)
    return path


BOMBS = [
    *(pytest.param(each, marks=pytest.mark.nightly) for each in (dictionary, elements)),
    prefixes,
]
READ = """
import json, re, sys
from pathlib import Path

import pyarrow as pa
from gateway.night.archive.segments import reading
from gateway.night.archive.segments.reading import open_parquet

reading._ALLOWANCE = reading._ARENA = 128 << 20
found = []
for read in (
    lambda file: file.read(),
    lambda file: [file.row_group(each) for each in range(file.metadata.num_row_groups)][:0],
    lambda file: [len(each) for each in file.batches(1_000)],
):
    try:
        with open_parquet(pa.OSFile(sys.argv[1])) as file:
            read(file)
    except pa.ArrowException as error:
        found.append(str(error))
# `ru_maxrss` also counts the parent before the exec.
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps([found, int(peak[1]) << 10]))
"""


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_of_many_values_is_refused_within_bounded_memory(
    tmp_path: Path, bomb: Callable[[Path], Path]
) -> None:
    path = bomb(tmp_path / "file.parquet")
    assert path.stat().st_size < 1 << 20

    printed = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", READ, path], capture_output=True, text=True, check=True
    ).stdout

    found, peak = json.loads(printed)
    assert len(found) == 3
    assert all(MESSAGE in text for text in found)
    assert peak < MAX_MEMORY


def test_all_parts_of_a_file_count_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page compresses zeros, and no part alone is too large."""
    monkeypatch.setattr(reading, "_ALLOWANCE", 4 << 20)
    part = pa.table({"payload": pa.array([bytes(1 << 20)])})
    path = write(tmp_path / "file.parquet", [part] * 20, use_dictionary=False)

    with open_parquet(pa.OSFile(str(path))) as file, pytest.raises(pa.ArrowMemoryError):
        list(file.batches(1_000))
    with open_parquet(pa.OSFile(str(path))) as file, pytest.raises(pa.ArrowMemoryError):
        [file.row_group(each) for each in range(20)]


def test_the_process_has_its_own_limit_again_after_a_read(tmp_path: Path) -> None:
    path = dictionary(tmp_path / "file.parquet")

    with pytest.raises(pa.ArrowMemoryError), open_parquet(pa.OSFile(str(path))) as file:
        file.read()

    assert resource.getrlimit(resource.RLIMIT_DATA) == reading.OWN_LIMIT


def segment_bomb(root: Path) -> Path:
    """A segment whose messages all have a name of a megabyte; 186 GiB."""
    rows, _ = to_table([received([1], gateway="east")])
    count = 200_000
    columns = [rows[each.name].take(pa.nulls(count, pa.int64()).fill_null(0)) for each in SCHEMA]
    table = pa.Table.from_arrays(columns, schema=SCHEMA)
    place = table.schema.get_field_index("name")
    field = pa.field("name", pa.dictionary(pa.int32(), pa.string()), nullable=False)
    table = table.set_column(place, field, repeated(count, 1_000_000))
    path = hour_folder(NOON) / "east-1-0000.parquet"
    metadata = {VERSION_KEY: str(SCHEMA_VERSION)}
    write(root / path, [table.replace_schema_metadata(metadata)], use_dictionary=["name"])
    return path


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def of_merge(root: Path) -> Iterator[object]:
    path = (hour_folder(NOON) / "east-1-0000.parquet").as_posix()
    merged = (hour_folder(NOON) / "merged-1-0000.parquet").as_posix()
    task = MergeTask(
        ArchiveLocation(root),
        merged,
        (MergeInput(path, "east", sha256_of(root / path)),),
    )
    result = merge(task)
    assert result.entry is None
    yield from ()
    raise ArchiveError(str(result.findings[0]))


def path_of(root: Path) -> Path:
    return next((root / day_folder(Path(), DAY)).rglob("*.parquet")).relative_to(root)


READERS: list[Callable[[Path], Iterable[object]]] = [
    lambda root: read_rows(root, DAY),
    lambda root: message_rows(LocalStorage(root), identity(1).hex()),
    lambda root: received_rows(LocalStorage(root), ReplayRange("orders", NOON, NOON + HOUR)),
    lambda root: read_segment(LocalStorage(root), path_of(root)),
    of_merge,
]


@pytest.mark.parametrize("read", READERS, ids=["rows", "show", "replay", "reconcile", "compact"])
def test_each_reader_of_the_archive_refuses_it(
    tmp_path: Path, read: Callable[[Path], Iterable[object]]
) -> None:
    segment_bomb(tmp_path)

    with pytest.raises(ArchiveError, match=MESSAGE):
        for _ in read(tmp_path):
            pass


def segment_with(path: Path, place: str, inner: bytes) -> None:
    """A segment of one row whose metadata says that its id sets lie at `place`."""
    content = pa.BufferOutputStream()
    rows = pa.table({"name": ["a"]})
    with pq.ParquetWriter(content, rows.schema) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({SETS_KEY: place.format(begin=content.tell())})
        content.write(inner)
    path.write_bytes(content.getvalue())


def test_the_sets_in_a_segment_are_bounded_as_its_rows_are(tmp_path: Path) -> None:
    bomb = dictionary(tmp_path / "bomb.parquet").read_bytes()
    segment_with(tmp_path / "segment.parquet", f"{{begin}} {len(bomb)}", bomb)

    with pytest.raises(ArchiveError, match=MESSAGE):
        read_beside(LocalStorage(tmp_path), Path("segment.parquet"), SETS_KEY)


@pytest.mark.parametrize("place", ["", "4", "4 0", "4 1000000000", "-4 10", "9" * 500 + " 4"])
def test_sets_at_no_place_of_the_segment_are_refused(tmp_path: Path, place: str) -> None:
    segment_with(tmp_path / "segment.parquet", place, b"")

    with pytest.raises(ArchiveError, match="it has no table at the place of"):
        read_beside(LocalStorage(tmp_path), Path("segment.parquet"), SETS_KEY)


def test_the_lookup_of_a_name_refuses_a_dictionary_of_too_many_values(tmp_path: Path) -> None:
    columns = {each.name: pa.nulls(200_000, each.type) for each in schema_of(DICTIONARY_COLUMNS)}
    columns["name"] = repeated(200_000, 1_000_000)
    write(tmp_path / DICTIONARY / "part.parquet", [pa.table(columns)])

    with pytest.raises(ArchiveError, match=MESSAGE):
        list(find_name(LocalStorage(tmp_path), "a"))


def test_rows_of_long_equal_names_are_not_merged_and_stay(tmp_path: Path) -> None:
    """Merged, they would take more than a reader allows a file."""
    storage, hour = LocalStorage(tmp_path), hour_folder(NOON)
    inputs: list[MergeInput] = []
    for number, name in enumerate(("short", "l" * 60_000)):
        numbers = range(number * 100, number * 100 + 100)
        table, _ = to_table(
            [received(numbers, gateway="east", name=name), delivered(numbers, gateway="east")]
        )
        path = hour / f"east-1-000{number}.parquet"
        storage.put(path, encoded(sort_rows(table)))
        inputs.append(MergeInput(path.as_posix(), "east", sha256_of(tmp_path / path)))
    merged = (hour / "merged-1-0000.parquet").as_posix()

    result = merge(MergeTask(ArchiveLocation(tmp_path), merged, tuple(inputs)))

    assert [each.path for each in result.replaces] == [inputs[0].path]
    assert result.findings == ()


def test_a_merged_row_group_of_long_names_has_fewer_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, path = LocalStorage(tmp_path), hour_folder(NOON) / "east-1-0000.parquet"
    merged = (hour_folder(NOON) / "merged-1-0000.parquet").as_posix()
    table, _ = to_table([rows(range(1_000), gateway="east") for rows in (received, delivered)])
    storage.put(path, encoded(sort_rows(table)))
    monkeypatch.setattr(merging, "_GROUP_BYTES", table.nbytes // 4)

    inputs = (MergeInput(path.as_posix(), "east", sha256_of(tmp_path / path)),)
    result = merge(MergeTask(ArchiveLocation(tmp_path), merged, inputs))

    assert result.entry is not None
    assert result.entry.rows == 2_000
    with open_parquet(storage.open(staged_path(Path(merged)))) as file:
        groups = [file.row_group(each) for each in range(file.metadata.num_row_groups)]
    assert max(len(each) for each in groups) == 500
    assert all(2 * len(set(each["id"].to_pylist())) == len(each) for each in groups)
