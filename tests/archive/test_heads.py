"""The heads of writers: what is written is read again, and any other content is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.archive.heads import (
    Outage,
    SourceConnection,
    StoredHead,
    WriterHead,
    from_json,
    head_path,
    open_gaps,
    read_head,
    read_heads,
    write_head,
)
from gateway.archive.signed_json import Previous, Term
from gateway.archive.storage import LocalStorage

KEY = b"the key of the seals"
HEAD = WriterHead(
    writer="plant-1",
    gateway="plant-1",
    at=1_700_000_000_000_000,
    closed=Previous("plant-1-1600000000000000-000003", "ab" * 32, 1_650_000_000_000_000),
    open="plant-1-1600000000000000-000004",
    sources={"bus": SourceConnection(5, True, Outage(3, "disconnected", "no answer"), dropped=7)},
)


def test_a_head_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_head(tmp_path, HEAD)
    assert read_heads(LocalStorage(tmp_path)) == [
        StoredHead(head_path("plant-1"), HEAD.signed(None))
    ]


def test_a_writer_without_a_head_has_none_and_no_fault(tmp_path: Path) -> None:
    assert read_head(tmp_path, "plant-1") == StoredHead(head_path("plant-1"), None)
    assert read_heads(LocalStorage(tmp_path)) == []


@pytest.mark.parametrize("key", [None, KEY])
def test_every_changed_byte_is_a_fault(tmp_path: Path, key: bytes | None) -> None:
    write_head(tmp_path, HEAD, key)
    path = tmp_path / head_path("plant-1")
    content = path.read_bytes()
    for position in range(len(content)):
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        assert read_head(tmp_path, "plant-1", key).fault


@pytest.mark.parametrize(
    ("written", "read"), [(None, KEY), (KEY, b"another key")], ids=["unsigned", "another key"]
)
def test_a_head_without_the_signature_of_the_key_has_a_fault(
    tmp_path: Path, written: bytes | None, read: bytes
) -> None:
    write_head(tmp_path, HEAD, written)
    assert read_head(tmp_path, "plant-1", read).fault


def test_a_signed_head_is_read_without_the_key(tmp_path: Path) -> None:
    write_head(tmp_path, HEAD, KEY)
    assert read_head(tmp_path, "plant-1").fault == ""


def test_a_head_under_the_name_of_another_writer_is_refused(tmp_path: Path) -> None:
    write_head(tmp_path, HEAD)
    (tmp_path / head_path("plant-1")).rename(tmp_path / head_path("plant-2"))
    (found,) = read_heads(LocalStorage(tmp_path))
    assert (found.head, found.fault) == (None, "is that of 'plant-1'")


@pytest.mark.parametrize(
    ("change", "predicate"),
    [
        ({"version": 2}, "has version 2; this program reads version 1"),
        ({"open": "journal"}, "names 'journal', which is no journal"),
        ({"lease": True}, "has no valid 'lease'"),
        ({"sources": {"bus": 1}}, "has no valid 'bus'"),
        ({"more": 1}, "lacks or adds 'more' in 'content'"),
    ],
)
def test_another_form_is_refused_with_its_fault(change: dict[str, object], predicate: str) -> None:
    document = json.loads(HEAD.to_json()) | change
    with pytest.raises(ValueError, match=predicate):
        from_json(json.dumps(document).encode())


def test_an_interrupted_replacement_leaves_the_head(tmp_path: Path) -> None:
    write_head(tmp_path, HEAD)
    (tmp_path / head_path("plant-1")).with_name(".plant-1.json.tmp").write_bytes(b"half")
    assert [each.head for each in read_heads(LocalStorage(tmp_path))] == [HEAD.signed(None)]
    write_head(tmp_path, replace(HEAD, open=None))
    assert [each.head and each.head.open for each in read_heads(LocalStorage(tmp_path))] == [None]


def outage(writer: str, at: int, lease: int) -> StoredHead:
    away = SourceConnection(at, known=True, outage=Outage(at, "not-running", writer))
    head = WriterHead(writer, "edge", at, sources={"plant": away}, lease=Term(lease))
    return StoredHead(head_path(writer), head)


@pytest.mark.parametrize(("lease", "last"), [(1, "edge@b"), (0, "edge@a")])
def test_the_open_gaps_of_a_gateway_are_those_of_the_instance_that_wrote_last(
    lease: int, last: str
) -> None:
    found = open_gaps([outage("edge@a", 5, lease), outage("edge@b", 4, 2 * lease)])

    assert [each.reason for each in found] == [last]
