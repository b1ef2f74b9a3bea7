"""Files with the routes of a gateway: written once, signed, uploaded, and removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from urllib.parse import quote

import pytest

from gateway.archive.heads import WriterHead, write_head
from gateway.archive.layout import MAX_TIME, day_start
from gateway.archive.location import ArchiveLocation
from gateway.archive.routes import (
    Rules,
    read_routes,
    routes_files,
    routes_findings,
    upload_routes,
    write_routes,
)
from gateway.archive.storage import LocalStorage, RemoteStorage, open_storage
from gateway.errors import ArchiveError
from gateway.night.archive.retention import remove_days
from gateway.night.archive.segments.convert import main as convert
from gateway.night.archive.verification.verify import verify_archive

ONE: Rules = [{"name": "orders", "targets": []}]
OTHER: Rules = [{"name": "orders", "targets": ["ü", 7]}]
KEY = b"a key of the seals"


def times(root: Path, writer: str = "edge") -> list[int]:
    return [each.since for each in routes_files(LocalStorage(root)) if each.writer == writer]


def test_equal_routes_are_stored_once(tmp_path: Path) -> None:
    for since, rules in ((5, ONE), (6, ONE), (7, OTHER), (8, OTHER), (9, ONE)):
        write_routes(tmp_path, "edge", rules, since)
    write_routes(tmp_path, "edge-1", ONE, 4)

    storage = LocalStorage(tmp_path)
    files = routes_files(storage)

    assert [(each.writer, each.since, each.until) for each in files] == [
        ("edge", 5, 7), ("edge", 7, 9), ("edge", 9, MAX_TIME), ("edge-1", 4, MAX_TIME),
    ]  # fmt: skip
    assert [[*(each.rules or ())] for each in read_routes(storage, files)] == [ONE, OTHER, ONE, ONE]
    assert [path.name for path in tmp_path.iterdir()] == ["_routes"]  # plain readers skip it


def test_a_clock_that_is_set_back_keeps_the_order(tmp_path: Path) -> None:
    write_routes(tmp_path, "edge", ONE, 1_000)
    write_routes(tmp_path, "edge", OTHER, 10)

    assert times(tmp_path) == [1_000, 1_001]


def test_another_key_or_a_damaged_file_is_no_equal_one(tmp_path: Path) -> None:
    write_routes(tmp_path, "edge", ONE, 1)
    write_routes(tmp_path, "edge", ONE, 2, KEY)
    write_routes(tmp_path, "edge", ONE, 3, KEY)
    (tmp_path / "_routes" / "edge-2.json").write_bytes(b"{}")
    write_routes(tmp_path, "edge", ONE, 4, KEY)

    assert times(tmp_path) == [1, 2, 4]


def test_a_file_is_not_written_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "_routes").write_bytes(b"")

    with pytest.raises(ArchiveError, match="_routes: cannot be written"):
        write_routes(tmp_path, "edge", ONE, 1)


def edited(document: dict[str, object]) -> bytes:
    return json.dumps({**document, "routes": OTHER}).encode()


def older(document: dict[str, object]) -> bytes:
    return json.dumps({**document, "since": 1}).encode()


def newer(document: dict[str, object]) -> bytes:
    return json.dumps({**document, "version": 2}).encode()


@pytest.mark.parametrize("key", [None, KEY], ids=["without-key", "with-key"])
@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        pytest.param(edited, "is not what its writer wrote", id="edited"),
        pytest.param(older, "is that of 'edge', from 1 on", id="other-time"),
        pytest.param(newer, "has version 2; this program reads version 1", id="newer"),
        pytest.param(lambda _: b"[]", "is no JSON object", id="list"),
        pytest.param(lambda _: b"\xff", "is no JSON", id="no-json"),
    ],
)
def test_a_damaged_file_is_a_finding(
    tmp_path: Path, key: bytes | None, damage: Callable[[dict[str, object]], bytes], fault: str
) -> None:
    write_routes(tmp_path, "edge", ONE, 5, key)
    write_head(tmp_path, WriterHead("edge", "edge", 5), key)
    path = tmp_path / "_routes" / "edge-5.json"
    storage = LocalStorage(tmp_path)
    assert not verify_archive(storage, key).findings

    path.write_bytes(damage(json.loads(path.read_bytes())))

    (found,) = verify_archive(storage, key).findings
    assert (found.rule, found.place) == ("damaged-routes", "_routes/edge-5.json")
    assert fault in found.text
    assert not list(routes_findings(storage, 0, 5, key))
    assert list(routes_findings(storage, 0, 6, key)) == [found]


def test_a_forger_without_the_key_is_found(tmp_path: Path) -> None:
    write_routes(tmp_path, "edge", ONE, 5, KEY)
    storage = LocalStorage(tmp_path)
    assert not list(routes_findings(storage, 0, 9, KEY))

    for forger in (None, b"another key of a seal"):
        (tmp_path / "_routes" / "edge-5.json").unlink()
        write_routes(tmp_path, "edge", OTHER, 5, forger)

        (found,) = routes_findings(storage, 0, 9, KEY)
        assert found.rule == "damaged-routes"


def test_retention_keeps_the_routes_of_the_kept_days(tmp_path: Path) -> None:
    days = [date(2026, 3, day) for day in (1, 3, 5, 7)]
    for rules, day in zip((ONE, OTHER, ONE, OTHER), days, strict=True):
        write_routes(tmp_path, "edge", rules, day_start(day))
    write_routes(tmp_path, "west", ONE, day_start(days[0]))
    storage = LocalStorage(tmp_path)

    removed = remove_days(storage, date(2026, 3, 6))

    assert (removed.files, removed.days) == (2, ())
    assert removed.size > 0
    assert times(tmp_path) == [day_start(days[2]), day_start(days[3])]
    assert times(tmp_path, "west") == [day_start(days[0])]
    assert not remove_days(storage, date(2026, 3, 6)).files


def test_the_converter_uploads_routes_and_keeps_the_newest(tmp_path: Path) -> None:
    buffer, url = tmp_path / "buffer", f"file://{quote(str(tmp_path / 'remote'))}"
    for since, rules in ((5, ONE), (7, OTHER)):
        write_routes(buffer, "edge", rules, since)
    assert convert([str(buffer), "--to", url]) == 0
    write_routes(buffer, "edge", OTHER, 8)
    write_routes(buffer, "edge", ONE, 9)
    assert convert([str(buffer), "--to", url]) == 0

    remote = open_storage(ArchiveLocation(buffer, url))
    assert isinstance(remote, RemoteStorage)
    assert [each.since for each in routes_files(remote)] == [5, 7, 9]
    read = read_routes(remote, routes_files(remote))
    assert [[*(each.rules or ())] for each in read] == [ONE, OTHER, ONE]
    assert times(buffer) == [9]
    upload_routes(remote, buffer)
