"""Recovery of identities from the journals of the last run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.archive.journal.records import MAGIC, Cell, Rows, pack
from gateway.archive.layout import JournalName, journal_folder
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime.delivery.duplicates import Identity
from gateway.runtime.inbound.recovery_from_journals import recover
from gateway.runtime.inbound.saved_echoes import save_echoes
from tests.archive.journal_files import journal_path

HASH = bytes(range(16))
COLUMNS: dict[str, list[Cell]] = {"name": ["a/b"], "origin_id": ["ID:1"], "hash": [HASH]}
ROWS = Rows(1, {"leg": "received", "endpoint": "plant"}, COLUMNS)


@pytest.mark.parametrize(
    ("magic", "identities"),
    [
        pytest.param(MAGIC, {"plant": [("a/b", "ID:1", HASH)]}, id="ours"),
        pytest.param(b"GWJRNL\0\4", {}, id="of-a-later-version"),
    ],
)
def test_a_journal_of_a_later_version_is_skipped(
    tmp_path: Path, magic: bytes, identities: dict[str, list[Identity]]
) -> None:
    path = journal_path(tmp_path, "edge", 0, 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(magic + pack([ROWS]))

    assert recover(tmp_path, GatewayIdentity("edge"), {}).identities == identities


@pytest.mark.parametrize(
    ("own", "number", "identity"),
    [(None, "stream 7", "stream 7"), ("ID:1", "stream 7", "stream 7"), ("ID:1", None, "ID:1")],
)
def test_the_number_of_the_broker_is_the_identity(
    tmp_path: Path, own: str | None, number: str | None, identity: str
) -> None:
    columns: dict[str, list[Cell]] = {**COLUMNS, "origin_id": [own], "identity": [number]}
    path = journal_path(tmp_path, "edge", 0, 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(MAGIC + pack([replace(ROWS, columns=columns)]))

    found = recover(tmp_path, GatewayIdentity("edge"), {}).identities

    assert found == {"plant": [("a/b", identity, HASH)]}


def test_echoes_that_a_clean_stop_waited_for_are_kept_once(tmp_path: Path) -> None:
    waiting = [(("mqtt://plant", "a/b", HASH), ("edge/r",))]
    journal_path(tmp_path, "edge", 0, 0).parent.mkdir(parents=True)
    save_echoes(tmp_path, "edge", waiting)

    assert recover(tmp_path, GatewayIdentity("edge"), {}).sent == waiting
    assert recover(tmp_path, GatewayIdentity("edge"), {}).sent == []


def test_copies_whose_echo_was_recorded_are_not_waited_for(tmp_path: Path) -> None:
    sent: dict[str, Cell] = {
        "leg": "delivered",
        "endpoint": "plant",
        "gateway": "edge",
        "time": 1,
        "route": "r",
    }
    cut: dict[str, Cell] = {
        "leg": "cut",
        "rule": "loop",
        "endpoint": "plant",
        "gateway": "edge",
        "route": "r",
    }
    names: dict[str, list[Cell]] = {"name": ["a/b", "a/b", "a/c"], "hash": [HASH] * 3}
    echo: dict[str, list[Cell]] = {
        "name": ["a/b"] * 2,
        "hash": [HASH] * 2,
        "id": [b"1"] * 2,
        "target": ["x", "y"],
    }
    path = journal_path(tmp_path, "edge", 0, 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(MAGIC + pack([Rows(3, sent, names), Rows(2, cut, echo)]))

    found = recover(tmp_path, GatewayIdentity("edge"), {"plant": "mqtt://plant"}).sent

    assert sorted(name for (_, name, _), _ in found) == ["a/b", "a/c"]


def test_the_journals_of_every_instance_in_reach_are_read(tmp_path: Path) -> None:
    for number, writer in enumerate(["edge@a", "edge@b", "edge@b~replay", "edge-2"]):
        path = journal_folder(tmp_path) / f"{JournalName(writer, 0, 0)}.open"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(MAGIC + pack([replace(ROWS, columns=COLUMNS | {"name": [f"n{number}"]})]))

    (found,) = recover(tmp_path, GatewayIdentity("edge"), {}).identities.values()

    assert [name for name, _, _ in found] == ["n0", "n1"]
