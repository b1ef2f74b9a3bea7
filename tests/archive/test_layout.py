from __future__ import annotations

import re
from datetime import date
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.archive.layout import (
    SCHEMA_VERSION,
    JournalName,
    gateway_of,
    hour_folder,
    is_instance,
    journals,
    parse_day,
    safe_name,
    writer_name,
    writer_of,
)
from tests.archive.journal_files import journal_path
from tests.archive.samples import NOON, START


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        pytest.param("edge-7", "edge-7", id="as-it-is"),
        pytest.param("plant.eu", "plant.eu", id="dot"),
        pytest.param("../etc", "_etc~7bec43d1", id="no-way-out"),
        pytest.param("", "~69217a30", id="empty"),
    ],
)
def test_a_gateway_name_becomes_part_of_a_file_name(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(st.text(max_size=80), st.text(max_size=80))
def test_two_gateways_never_share_a_file_name(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (one == other)
    assert "/" not in safe_name(one)
    assert not safe_name(one).startswith(".")


def test_journals_of_one_gateway_are_found_by_its_name_alone(tmp_path: Path) -> None:
    mine = [journal_path(tmp_path, "edge", START, number) for number in (0, 1)]
    for path in (*mine, journal_path(tmp_path, "edge-2", START, 0)):
        path.parent.mkdir(exist_ok=True)
        path.touch()

    assert journals(tmp_path, "edge") == mine
    assert len(journals(tmp_path)) == 3


def test_the_folder_of_a_row_is_its_hour_in_utc() -> None:
    assert hour_folder(NOON - 1) == Path("date=2026-03-14", "hour=11")
    assert hour_folder(NOON) == Path("date=2026-03-14", "hour=12")


@pytest.mark.parametrize(
    ("folder", "day"),
    [
        pytest.param("date=2026-03-01", date(2026, 3, 1), id="day"),
        pytest.param("date=2026-13-45", None, id="no-such-day"),
        pytest.param("date=2026-3-1", None, id="short"),
        pytest.param("date=20260301", None, id="compact"),
        pytest.param("date=2026-W10-1", None, id="week"),
        pytest.param("2026-03-01", None, id="without-key"),
    ],
)
def test_a_day_folder_has_one_spelling(folder: str, day: date | None) -> None:
    assert parse_day(folder) == day


def test_writers_of_different_instances_have_different_names() -> None:
    pairs = list(
        product(
            ["plant", "plant@a", "a", "plant~replay", "Ä"], ["", "a", "b", "a b", "ä", "b~replay"]
        )
    )
    names = [
        writer_name(gateway, each, replay=replay)
        for gateway, each in pairs
        for replay in (False, True)
    ]

    assert len(set(names)) == len(names)
    assert [gateway_of(name) for name in names] == [
        safe_name(g) for g, _ in pairs for _ in range(2)
    ]
    assert writer_name("plant-1", "b") == "plant-1@b"


def test_a_segment_tells_its_writer() -> None:
    stem = JournalName("plant-1@b", START, 7)

    assert writer_of(Path(f"date=2026-03-14/hour=12/{stem}-0.parquet")) == "plant-1@b"
    assert writer_of(Path("date=2026-03-14/hour=12/merged-3-0.parquet")) is None
    assert is_instance("plant-1@b", "plant-1")
    assert not is_instance("plant-1@b~replay", "plant-1")
    assert not is_instance("plant-10@b", "plant-1")


@pytest.mark.parametrize("page", ["archive", "upgrade"])
def test_the_documents_name_the_version_of_the_layout(page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text()

    assert re.findall(r"`gateway\.schema` (?:is|in the metadata, now) `?(\d+)`?", text) == [
        str(SCHEMA_VERSION)
    ]
