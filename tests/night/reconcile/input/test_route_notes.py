"""Notes about routes, from a sample of the archive's segments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import open_storage
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.input.row_reader import TargetName
from gateway.night.reconcile.report.route_notes import (
    NOTES,
    lossy_routes,
    run_notes,
    with_notes,
    with_unconfigured,
)
from gateway.night.reconcile.report.rows import Row
from tests.archive.samples import DAY, archive, delivered, received
from tests.archived import convert_journals, segments

EMS = ENDPOINT_KINDS["jms"].payload_encoding
KIND = {"payload_kind": "bytes"}  # archived beside every payload


def route(name: str, target: str = "erp", **counts: int) -> Row:
    return {"route": name, "target": target, **counts}


def noted(
    routes: Sequence[Row],
    location: ArchiveLocation,
    paths: Sequence[Path],
    tapped: Collection[TargetName] = (),
) -> list[Row]:
    """The routes with the notes that a task finds, here in this process."""
    found = [schema_of(NOTES).empty_table(), *run_notes(location, lossy_routes(routes), paths)]
    return with_notes(routes, pa.concat_tables(found), tapped)


@pytest.fixture
def stored(tmp_path: Path) -> tuple[ArchiveLocation, list[Path]]:
    archive(
        tmp_path,
        received([1], payload=b"x", headers=KIND),
        received([2]),
        delivered([1, 2], reason=EMS),
        received([3], route="bare"),
        delivered([3], route="bare", target="far", system="mqtt"),
    )
    paths = [each.relative_to(tmp_path) for each in segments(tmp_path, DAY)]
    return ArchiveLocation(tmp_path), paths


def test_a_route_has_its_notes(stored: tuple[ArchiveLocation, list[Path]]) -> None:
    routes = [route("orders", missing=1), route("bare", "far", **{"lost in target": 1})]

    assert noted(routes, *stored) == [
        {**routes[0], "taps_needed": EMS, "payloads_archived": True},
        {**routes[1], "payloads_archived": False},
    ]


def test_copies_in_flight_wait_for_a_target_that_is_configured_or_not() -> None:
    waiting = [{**route("orders", target), "in flight": 2} for target in ("erp", "old")]
    routes: list[Row] = [*waiting, route("bare", "old")]

    found = list(with_unconfigured(routes, {("orders", "erp")}))

    assert found == [routes[0], {**routes[1], "unconfigured": True}, routes[2]]


def test_payloads_are_not_read_without_a_loss(stored: tuple[ArchiveLocation, list[Path]]) -> None:
    calm = route("orders", missing=0)

    assert noted([calm], *stored) == [{**calm, "taps_needed": EMS}]


def test_payloads_are_not_read(tmp_path: Path) -> None:
    payload = bytes(1 << 20)
    archive(
        tmp_path,
        received(range(99), payload=payload, headers=KIND),
        received([100], route="bare"),
    )
    convert_journals(tmp_path)  # a stop leaves some on a slow machine
    paths = [each.relative_to(tmp_path) for each in segments(tmp_path, DAY)]
    pool = pa.proxy_memory_pool(pa.system_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        routes = [route("orders", missing=1), route("bare", missing=1)]
        found = noted(routes, ArchiveLocation(tmp_path), paths)
    finally:
        pa.set_memory_pool(before)

    assert [row.get("payloads_archived") for row in found] == [True, False]
    assert pool.max_memory() < 10 << 20


def test_a_tapped_target_and_an_unknown_route_have_no_note(
    stored: tuple[ArchiveLocation, list[Path]],
) -> None:
    routes = [route("orders"), route("unknown", missing=1)]

    assert noted(routes, *stored, tapped={("orders", "erp")}) == routes


def test_an_unreadable_segment_is_left_out(stored: tuple[ArchiveLocation, list[Path]]) -> None:
    location, paths = stored
    torn = Path("date=2026-03-14/hour=12/torn.parquet")
    open_storage(location).put(torn, b"torn")

    found = noted([route("orders")], location, [torn, *paths])

    assert found[0]["taps_needed"] == EMS


def test_a_date_without_segments_has_no_notes(stored: tuple[ArchiveLocation, list[Path]]) -> None:
    assert noted([route("orders", missing=1)], stored[0], []) == [route("orders", missing=1)]
