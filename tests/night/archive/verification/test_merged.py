"""Merged segments prove what their inputs proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.archive.layout import HOUR, day_of
from gateway.night.archive.seals.seal import End, MergeSeal, Replaced
from gateway.night.archive.seals.store import write_seal
from gateway.night.archive.segments.write import write_segment
from tests.archive.samples import DAY, NOON
from tests.night.archive.verification.chained import (
    Chained,
    chained,
    errors,
    rows_at,
)
from tests.night.archive.verification.stored_entry import make_entry
from tests.night.archive.verification.test_verify import KEYS, NEXT


def merged(made: Chained) -> MergeSeal:
    """Merge two journals' segments of one hour, and leave the inputs in place."""
    entries = [seal.segments[0] for seal in made.seals[:2]]
    path = Path(entries[0].path).with_name("merged-1-0000.parquet")
    rows = rows_at("east", [NOON, NOON + HOUR // 2])
    entry = write_segment(made.storage, path, [rows], "merged-1")
    assert entry is not None
    assert make_entry(made.storage, path) == entry
    seal = MergeSeal(
        day_of(NOON).isoformat(),
        1,
        tuple(Replaced(each.path, each.sha256) for each in entries),
        (entry,),
    )
    write_seal(made.storage, seal, made.key)
    return seal


def two_journals(root: Path, key: bytes | None) -> Chained:
    made = chained(root, key)
    made.add("east", NOON, NOON + HOUR // 2)
    made.add("east", NOON + HOUR // 2, NOON + HOUR, end=End.STOPPED)
    return made


@KEYS
@pytest.mark.parametrize("left", [0, 1, 2])
def test_merged_segments_replace_their_inputs(tmp_path: Path, key: bytes | None, left: int) -> None:
    made = two_journals(tmp_path, key)
    assert errors(made.verify()) == []
    seal = merged(made)
    for each in seal.replaces[left:]:
        (tmp_path / each.path).unlink()

    verified = made.verify()

    assert verified.findings == ()
    assert [each.path.name for each in verified.segments] == ["merged-1-0000.parquet"]


def test_a_merged_segment_with_fewer_rows_is_found(tmp_path: Path) -> None:
    made = two_journals(tmp_path, None)
    seal = merged(made)
    rows = rows_at("east", [NOON])
    entry = write_segment(made.storage, Path(seal.segments[0].path), [rows], "merged-1")
    assert entry is not None
    write_seal(made.storage, replace(seal, segments=(entry,)))

    assert errors(made.verify()) == ["changed-segment"]


def test_a_compaction_of_another_content_is_found(tmp_path: Path) -> None:
    made = two_journals(tmp_path, None)
    seal = merged(made)
    first = replace(seal.replaces[0], sha256="0" * 64)
    write_seal(made.storage, replace(seal, replaces=(first, *seal.replaces[1:])))

    assert errors(made.verify()) == ["changed-segment"]


def test_a_missing_merged_segment_is_found(tmp_path: Path) -> None:
    made = two_journals(tmp_path, None)
    seal = merged(made)
    (tmp_path / seal.segments[0].path).unlink()

    assert errors(made.verify()) == ["missing-segment"]


def test_a_merge_seal_may_name_its_date_alone(tmp_path: Path) -> None:
    made = two_journals(tmp_path, None)
    seal = merged(made)
    other = replace(seal.segments[0], path=f"date={DAY + NEXT}/hour=12/merged-1-0000.parquet")
    write_seal(made.storage, replace(seal, segments=(other,)))

    assert "forged-seal" in errors(made.verify())
