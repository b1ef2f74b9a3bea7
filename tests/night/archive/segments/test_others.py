"""Copies of what other instances of a gateway left in a bucket, in the buffer of the next one."""

from __future__ import annotations

import json
import logging
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.archive.heads import SourceConnection, head_path
from gateway.archive.journal import converter_process
from gateway.archive.journal.converter_process import fetch_others
from gateway.archive.journal.local_head import LocalHead, last_end
from gateway.archive.layout import HEADS, NAMES, OTHERS
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.name_store import NameStore
from gateway.archive.signed_json import Term
from gateway.archive.storage import open_storage
from gateway.night.archive.segments.convert import main
from tests.archive.bucket import Bucket
from tests.archive.samples import NOON
from tests.waiting import PATIENCE

STATE = SourceConnection(heard=NOON, known=True)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slow machine take longer than an instance waits for the bucket."""
    monkeypatch.setattr(converter_process, "FETCH_SECONDS", PATIENCE)


def left(location: ArchiveLocation, gateway: str, instance: str, lease: int, name: str) -> None:
    """Write a head and a short name as an instance does, and upload them."""
    writer = f"{gateway}@{instance}"
    head = LocalHead(
        location.local, gateway, writer, None, lambda: NOON + lease, instance, Term(lease, NOON, 10)
    )
    head.change(lambda found: replace(found, sources={"plant": STATE}))
    store = NameStore(location.local, writer)
    store.remember(f"~{name}", (name,))
    store.commit()
    store.close()
    assert main([str(location.local), "--to", location.url]) == 0


def fetched(location: ArchiveLocation, writer: str, key: bytes | None = None) -> list[str]:
    fetch_others(location, writer, key)
    return sorted(
        path.name
        for folder in (HEADS, NAMES)
        for path in (location.local / folder).glob(f"{OTHERS}/*")
    )


def recalled(location: ArchiveLocation, digest: str) -> tuple[str, ...] | None:
    store = NameStore(location.local, "edge@a")
    try:
        return store.recall(digest)
    finally:
        store.close()


def test_an_instance_continues_from_what_another_left_in_the_bucket(
    tmp_path: Path, bucket: Bucket
) -> None:
    bucket.start()
    own, other, foreign = (parse_location(bucket.url, str(tmp_path / each)) for each in "abc")
    left(own, "edge", "a", 6, "own")
    left(other, "edge", "b", 7, "one")
    left(foreign, "west", "b", 9, "foreign")
    head = LocalHead(own.local, "edge", "edge@a", instance="a")

    assert fetched(own, "edge@a") == ["edge@b.json", "edge@b.jsonl"]

    newest = head.newest()
    assert newest is not None
    assert (newest.writer, newest.lease.number) == ("edge@b", 7)
    assert newest.sources == {"plant": STATE}
    assert last_end(own.local, "edge") == NOON + 7
    assert recalled(own, "~one") == ("one",)
    left(other, "edge", "b", 8, "two")
    fetched(own, "edge@a")
    assert last_end(own.local, "edge") == NOON + 8
    assert recalled(own, "~two") == ("two",)


def test_copies_of_another_instance_are_never_uploaded(tmp_path: Path, bucket: Bucket) -> None:
    """They may be older than what it wrote since."""
    bucket.start()
    own, other = (parse_location(bucket.url, str(tmp_path / each)) for each in "ab")
    left(other, "edge", "b", 7, "one")
    assert fetched(own, "edge@a")
    left(other, "edge", "b", 8, "two")

    left(own, "edge", "a", 9, "own")

    storage = open_storage(own)
    for path in (head_path("edge@b"), Path(NAMES) / "edge@b.jsonl"):
        assert storage.read(path) == (other.local / path).read_bytes()


def test_a_bucket_that_is_away_is_logged_and_the_copies_stay(
    tmp_path: Path, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    bucket.start()
    own, other = (parse_location(bucket.url, str(tmp_path / each)) for each in "ab")
    left(other, "edge", "b", 7, "one")
    copies = fetched(own, "edge@a")
    bucket.stop()
    assert not caplog.records

    assert fetched(own, "edge@a") == copies
    (line,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "other machines" in line.getMessage()


def test_a_head_without_the_signature_of_the_archive_is_not_taken(
    tmp_path: Path, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    bucket.start()
    own, other = (parse_location(bucket.url, str(tmp_path / each)) for each in "ab")
    left(other, "edge", "b", 7, "one")

    assert fetched(own, "edge@a", b"the key of the archive") == ["edge@b.jsonl"]

    assert "_heads/edge@b.json: has no signature" in caplog.text
    assert last_end(own.local, "edge") == 0


def test_a_bucket_that_does_not_answer_is_waited_for_no_longer_than_the_limit(
    tmp_path: Path,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(converter_process, "FETCH_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", bucket.port)):  # it takes connections, and is silent
        fetch_others(parse_location(bucket.url, str(tmp_path)), "edge@a", None)

    assert "no answer within 0.5 s" in caplog.text


def test_the_names_in_a_bucket_outlive_the_buffer_of_their_writer(
    tmp_path: Path, bucket: Bucket
) -> None:
    bucket.start()
    old, new = (parse_location(bucket.url, str(tmp_path / each)) for each in ("old", "new"))
    left(old, "edge", "a", 1, "old")

    for name in ("new", "newer", "a-name-that-is-longer-than-all-names-before"):
        left(new, "edge", "a", 2, name)

    content = open_storage(new).read(Path(NAMES) / "edge@a.jsonl") or b""
    digests = [json.loads(line)["digest"] for line in content.splitlines() if line]
    wanted = ["old", "new", "newer", "a-name-that-is-longer-than-all-names-before"]
    assert digests == [f"~{name}" for name in wanted]
