"""Every row counts exactly once, wherever a compaction stops, and no loss becomes invisible."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import SCHEMA_VERSION, day_folder, seal_folder
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.signed_json import StoredDigest
from gateway.archive.storage import LocalStorage, Storage, open_storage
from gateway.errors import ArchiveError
from gateway.night.archive.compaction import compact_day as compaction
from gateway.night.archive.compaction import merge as merging
from gateway.night.archive.compaction.compact_day import CompactionReport, compact_day
from gateway.night.archive.compaction.current import current_files
from gateway.night.archive.seals.store import digests_of
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY, NOON, delivered, received
from tests.night.archive.compaction.days import merged_here, names, rows_of, write_day

FOLDER = day_folder(Path(), DAY)
KEY = b"a key of the archive"
MUTATIONS = ("put", "move", "delete", "remove")


class Crash(BaseException):
    """Stands for the end of the process: no code catches it."""


class Fragile:
    """A storage whose process ends before the change `number`, and has no end without one."""

    def __init__(self, storage: Storage, number: int | None = None) -> None:
        self._storage, self._left = storage, number
        self.changes = 0

    def __getattr__(self, name: str) -> object:
        method = getattr(self._storage, name)
        return self._counted(method) if name in MUTATIONS else method

    def _counted(self, method: Callable[..., object]) -> Callable[..., object]:
        def change(*arguments: object) -> object:
            if self.changes == self._left:
                raise Crash(str(arguments))
            self.changes += 1
            return method(*arguments)

        return change


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int | None], list[Fragile]]]:
    """Make every storage of a compaction fragile; return the one in use."""

    def use(number: int | None) -> list[Fragile]:
        made: list[Fragile] = []

        def opened(location: ArchiveLocation) -> Fragile:
            if not made:
                made.append(Fragile(open_storage(location), number))
            return made[0]

        for module in (compaction, merging):
            monkeypatch.setattr(module, "open_storage", opened)
        return made

    yield use
    monkeypatch.undo()


def silent(_: str) -> None:
    return None


def compacted(location: ArchiveLocation, key: bytes | None = None) -> CompactionReport:
    return compact_day(location, DAY, merged_here, silent, key=key)


def counted(storage: Storage) -> Counter[str]:
    """The rows that count for the readers of the product."""
    return rows_of(storage, [each.at for each in current_files(storage, DAY)])


def rules(report: CompactionReport) -> list[str]:
    return [each.rule for each in report.findings]


@pytest.fixture
def location(tmp_path: Path) -> ArchiveLocation:
    found = ArchiveLocation(tmp_path / "archive")
    write_day(found)
    return found


@pytest.fixture
def storage(location: ArchiveLocation) -> Storage:
    return open_storage(location)


def test_the_segments_of_an_hour_become_one_in_the_same_folder(
    location: ArchiveLocation, storage: Storage
) -> None:
    before = counted(storage)

    done = compacted(location)

    assert (done.segments, done.rows, done.findings) == (8, before.total(), ())
    assert counted(storage) == before
    assert names(storage) == ["hour=11/merged-1-0000.parquet", "hour=12/merged-1-0001.parquet"]
    assert compacted(location) == CompactionReport()


def test_late_segments_become_a_second_generation(
    location: ArchiveLocation, storage: Storage
) -> None:
    compacted(location)
    write_day(location, ("late",), (12,))
    before = counted(storage)

    done = compacted(location)

    assert done.merged == (f"{FOLDER}/hour=12/merged-2-0000.parquet",)
    assert counted(storage) == before
    assert len(names(storage)) == 3


def test_a_crash_at_any_change_leaves_every_row_once(
    tmp_path: Path, fragile: Callable[[int | None], list[Fragile]]
) -> None:
    write_day(ArchiveLocation(tmp_path / "whole"), ("east",))
    whole = open_storage(ArchiveLocation(tmp_path / "whole"))
    before = counted(whole)
    shutil.copytree(tmp_path / "whole", tmp_path / "first")
    used = fragile(None)
    compacted(ArchiveLocation(tmp_path / "first"))
    changes = used[0].changes
    assert changes > 10

    for number in range(changes):
        location = ArchiveLocation(tmp_path / f"crash-{number}")
        shutil.copytree(tmp_path / "whole", location.local)
        storage = open_storage(location)
        fragile(number)
        with pytest.raises(Crash):
            compacted(location)
        assert counted(storage) == before, number
        fragile(None)
        done = compacted(location)
        assert done.findings == ()
        assert counted(storage) == before, number
        assert len(names(storage)) == 2


def test_another_process_hashes_what_an_interrupted_compaction_left(tmp_path: Path) -> None:
    location = ArchiveLocation(tmp_path / "archive")
    write_day(location, ("east",))
    shutil.copytree(location.local / FOLDER, tmp_path / "kept")
    compacted(location)
    shutil.copytree(tmp_path / "kept", location.local / FOLDER, dirs_exist_ok=True)
    edits_a_segment(location.local)
    asked: list[Path] = []

    def hash_elsewhere(files: Mapping[Path, int]) -> Mapping[Path, StoredDigest]:
        asked.extend(files)
        found = digests_of(open_storage(location), files)
        assert all(files[path] == each.size for path, each in found.items())
        return found

    done = compact_day(location, DAY, merged_here, silent, hash_files=hash_elsewhere)

    assert len(asked) == 4
    assert rules(done) == ["changed-segment"]
    assert [each for each in asked if (location.local / each).exists()] == [
        Path(done.findings[0].place)
    ]


def copies_a_segment(root: Path) -> None:
    (first, *_) = sorted((root / FOLDER).glob("hour=12/east-*"))
    shutil.copy(first, first.with_name("east-copy.parquet"))


def loses_a_segment(root: Path) -> None:
    next((root / FOLDER).glob("hour=12/east-*")).unlink()


def edits_a_segment(root: Path) -> None:
    (path, *_) = sorted((root / FOLDER).glob("hour=12/east-*"))
    was = path.stat()
    pq.write_table(pq.read_table(path, partitioning=None).slice(1), path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def loses_a_seal(root: Path) -> None:
    next((root / seal_folder(DAY)).glob("east-*-000003.json")).unlink()


def edits_a_seal(root: Path) -> None:
    path = next((root / seal_folder(DAY)).glob("east-*-000003.json"))
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "rows": 1}))


TAMPERINGS = [
    pytest.param(copies_a_segment, ["unsealed-segment"], 8, id="copied"),
    pytest.param(loses_a_segment, ["missing-segment"], 7, id="lost"),
    pytest.param(edits_a_segment, ["changed-segment"], 7, id="edited-with-its-time"),
    pytest.param(loses_a_seal, ["unsealed-segment"], 7, id="seal-lost"),
    pytest.param(edits_a_seal, ["forged-seal", "unsealed-segment"], 7, id="seal-edited"),
]


@pytest.mark.parametrize(("tamper", "found", "merged"), TAMPERINGS)
def test_case_6_a_loss_stays_visible(
    location: ArchiveLocation,
    tamper: Callable[[Path], None],
    found: list[str],
    merged: int,
) -> None:
    tamper(location.local)
    storage = open_storage(location)
    seals = len(storage.files(seal_folder(DAY)))

    done = compacted(location)
    again = compacted(location)

    assert (sorted(rules(done)), done.segments) == (found, merged)
    assert sorted(rules(again)) == found
    assert len(storage.files(seal_folder(DAY))) == seals + 1
    left = [path for path in names(storage) if "merged" not in path]
    assert len(left) == (0 if found == ["missing-segment"] else 1)


def test_a_keyed_archive_is_compacted_with_its_key_only(tmp_path: Path) -> None:
    location = ArchiveLocation(tmp_path)
    write_day(location, key=KEY)
    before = names(open_storage(location))

    with pytest.raises(ArchiveError, match="give the key with --seal-key"):
        compacted(location)
    assert rules(compacted(location, b"another")) == ["forged-seal"] * 8 + ["unsealed-segment"] * 8
    assert names(open_storage(location)) == before
    assert compacted(location, KEY).segments == 8
    seal = json.loads((tmp_path / seal_folder(DAY) / "merged-1.json").read_bytes())
    assert seal["keyed"] is True


def test_unsigned_seals_are_no_input_with_a_key(location: ArchiveLocation) -> None:
    done = compacted(location, KEY)

    assert Counter(rules(done)) == {"unsigned-seal": 8, "unsealed-segment": 8}
    assert done.segments == 0


def test_a_segment_with_the_columns_of_another_version_stays(tmp_path: Path) -> None:
    location = ArchiveLocation(tmp_path)
    table, _ = to_table([received([1], time=NOON, gateway="edge")])
    rows = sort_rows(table).drop_columns(["reason"])
    write_sealed(open_storage(location), "edge-1-000000", rows, gateway="edge")
    before = names(open_storage(location))

    done = compacted(location)

    (finding,) = done.findings
    assert (finding.rule, done.segments) == ("foreign-file", 0)
    assert f"its columns are not those of version {SCHEMA_VERSION}" in finding.text
    assert names(open_storage(location)) == before


def test_a_damaged_merge_seal_costs_no_file(location: ArchiveLocation, storage: Storage) -> None:
    compacted(location)
    before, path = storage.files(Path()), location.local / seal_folder(DAY) / "merged-1.json"
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    write_day(location, ("late",), (12,))

    done = compacted(location)

    assert Counter(rules(done)) == {
        "forged-seal": 1, "missing-segment": 8, "unsealed-segment": 2,
    }  # fmt: skip
    assert done.merged == (f"{FOLDER}/hour=12/merged-2-0000.parquet",)
    path.write_bytes(content)
    assert set(before) < set(storage.files(Path()))
    assert compacted(location) == CompactionReport()


def test_names_in_a_seal_are_no_paths(location: ArchiveLocation, tmp_path: Path) -> None:
    victim = tmp_path / "victim.parquet"
    victim.write_bytes(b"of somebody else")
    folder = location.local / seal_folder(DAY)
    compacted(location)
    document = json.loads((folder / "merged-1.json").read_bytes())
    document |= {"replaces": [{"path": "../victim.parquet", "sha256": "0" * 64}]}
    (folder / "merged-1.json").write_text(json.dumps(document))

    assert "forged-seal" in rules(compacted(location))
    assert victim.exists()


@pytest.mark.parametrize("part", [FOLDER, FOLDER / "hour=12"])
def test_a_folder_behind_a_link_is_not_emptied(
    location: ArchiveLocation, tmp_path: Path, part: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (location.local / part).rename(elsewhere)
    (location.local / part).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))

    with pytest.raises(ArchiveError, match="is a symbolic link"):
        compacted(location)

    assert sorted(elsewhere.rglob("*")) == before


def test_rows_that_differ_after_the_writing_are_not_committed(
    location: ArchiveLocation, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = counted(storage)
    put = LocalStorage.put

    def spoilt(self: LocalStorage, path: Path, content: bytes) -> object:
        if path.suffix == ".parquet":
            return put(
                self, path, open_storage(location).read(current_files(storage, DAY)[0].at) or b""
            )
        return put(self, path, content)

    monkeypatch.setattr(LocalStorage, "put", spoilt)

    with pytest.raises(ArchiveError, match="row group 0 differs"):
        compacted(location)

    assert counted(storage) == before


def test_a_bucket_is_compacted_where_it_lies(bucket: Bucket, tmp_path: Path) -> None:
    bucket.start()
    location = parse_location(bucket.url, str(tmp_path))
    write_day(location)
    storage = open_storage(location)
    before = counted(storage)

    done = compacted(location)

    assert (done.segments, done.findings) == (8, ())
    assert names(storage) == ["hour=11/merged-1-0000.parquet", "hour=12/merged-1-0001.parquet"]
    assert counted(storage) == before
    assert compacted(location) == CompactionReport()


def test_a_row_group_has_whole_messages_of_one_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_GROUP_ROWS", 8)
    tables: list[tuple[str, pa.Table]] = []
    for gateway, count in (("east", 15), ("east", 3), ("west", 2), ("west", 9)):
        ids = range(len(tables) * 100, len(tables) * 100 + count)
        rows, _ = to_table([received(ids), delivered(ids), delivered(ids, "audit")])
        tables.append((gateway, sort_rows(rows)))

    groups = list(merging.row_groups(iter(tables)))

    held = [set(group["id"].to_pylist()) for group in groups]
    assert sum(map(len, held)) == len(set.union(*held)) == 29
    assert sum(map(len, groups)) == 29 * 3
    assert max(map(len, groups)) <= 8
    assert all(group.equals(sort_rows(group)) for group in groups)
