"""The path of a message ends with the targets behind which it has another id."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gateway.archive.heads import WriterHead, head_path
from gateway.archive.journal.ends import Head
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import ROUTES, JournalName, journal_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.routes import write_routes
from gateway.archive.signed_json import Previous
from gateway.archive.storage import open_storage
from gateway.cli import main
from gateway.config.load import load
from gateway.night.cli.show import MAX_NAMED
from gateway.routing.name_rules import to_rules
from tests.archive.bucket import Bucket
from tests.archive.samples import NOON, QUICK, START, archive, identity, put, received
from tests.night.reconcile.hop_chain import SINCE, Chain


def shown(archive: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    assert main(["archive", "show", str(archive), identity(7).hex(), *more]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_path_ends_with_the_targets_that_carry_no_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = Chain(ids=False)
    chain.relay("plant", 7, NOON)
    chain.write(tmp_path / "archive")

    title, *ends = shown(tmp_path / "archive", capsys)[-2:]

    assert title.startswith("The path ends at targets without `add_message_id`. At a gateway")
    assert ends == ["  plant  up  bus"]
    assert len(shown(tmp_path / "archive", capsys, "--json")) == 2  # rows only


def test_a_path_over_all_gateways_names_no_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = Chain(ids=False)
    chain.message(7, NOON)
    chain.write(tmp_path / "archive")

    assert not [line for line in shown(tmp_path / "archive", capsys) if "add_message_id" in line]


def test_targets_that_carry_the_id_end_no_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = Chain()
    chain.relay("plant", 7, NOON)
    chain.write(tmp_path / "archive")

    assert not [line for line in shown(tmp_path / "archive", capsys) if "add_message_id" in line]


ROUND_TRIP = {
    "plant": """\
endpoints:
  field: {kind: memory, dialect: mqtt, headers: true, broker_id: field}
  bus: {kind: memory, dialect: mqtt, headers: true, broker_id: bus}
  hub: {kind: memory, dialect: ems, headers: true, broker_id: hub}
routes:
  up:
    from: {endpoint: field, pattern: "a/{rest...}"}
    to: {endpoint: bus, template: "bus/{rest...}", add_message_id: true}
  back:
    from: {endpoint: hub, pattern: "BACK.{rest...}"}
    to: {endpoint: field, template: "back/{rest...}"}
""",
    "core": """\
endpoints:
  bus: {kind: memory, dialect: mqtt, headers: true, broker_id: bus}
  hub: {kind: memory, dialect: ems, headers: true, broker_id: hub}
routes:
  across:
    from: {endpoint: bus, pattern: "bus/{rest...}"}
    to: {endpoint: hub, template: "HUB.{rest...}"}
""",
}


@pytest.mark.parametrize(
    ("pattern", "ends"), [("HUB.{rest...}", ["  core  across  hub"]), ("BACK.{rest...}", [])]
)
def test_a_way_back_to_a_gateway_with_a_row_ends_where_the_id_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str, ends: list[str]
) -> None:
    """The first gateway takes the copy by another route, as a message of its own."""
    root = tmp_path / "archive"
    chain = Chain()
    chain.relay("plant", 7, NOON)
    chain.relay("core", 7, NOON + 10_000)
    chain.write(root)
    shutil.rmtree(root / ROUTES)
    for gateway, text in ROUND_TRIP.items():
        file = tmp_path / f"{gateway}.yaml"
        file.write_text(text.replace("BACK.{rest...}", pattern))
        write_routes(root, gateway, to_rules(load(file).routes), SINCE)

    lines = shown(root, capsys)

    assert [line for line in lines if line.startswith("  core  ")] == ends
    assert any("add_message_id" in line for line in lines) == bool(ends)


def test_an_answer_names_the_rows_that_no_segment_has_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest row of a name was in the open journal, and an older one was the answer."""
    archive(tmp_path, received([7]), gateway="old")
    idle, busy = (
        ArchiveWriter(tmp_path, gateway, START, QUICK, clock=lambda: NOON + 5_000_000)
        for gateway in ("idle", "edge")
    )
    put(busy, received([7], time=NOON + 6_000_000))
    open_journal = (
        "not in this answer: rows of edge since 2026-03-14 12:00:05 UTC, whose journal is open. It"
        " closes a quarter of an hour after its first row, or after `archive.segment_seconds`, and"
        " at a stop: ask again then"
    )
    try:
        for words, status in ((["--name", "a/b7"], 0), ([identity(7).hex()], 0), (["x"], 1)):
            assert main(["archive", "show", str(tmp_path), *words]) == status
            assert capsys.readouterr().out.splitlines()[-1] == open_journal
        assert main(["archive", "show", str(tmp_path), "x", "--json"]) == 1
        assert open_journal in capsys.readouterr().err
        assert main(["archive", "show", str(tmp_path), "x", "--date", "2026-03-12"]) == 1
        assert "journal" not in capsys.readouterr().out  # its rows are of later dates
    finally:
        idle.close()
        busy.close()


def test_an_answer_names_the_journals_that_wait_for_a_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(tmp_path, received([7]), gateway="old")
    name = JournalName("edge", NOON, 0)
    head = Head("edge", "edge", NOON, 0, NOON, None)
    (journal_folder(tmp_path) / f"{name}.open").write_bytes(head.pack())

    assert main(["archive", "show", str(tmp_path), "x"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("not in this answer: rows of edge since 2026-03-14 12:00:00 UTC, whose")
    assert last.endswith(f"the night does it too: gateway reconcile {tmp_path}")


def test_an_answer_from_a_bucket_says_until_when_the_heads_know(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journals are on the disk of the gateway."""
    bucket.start()
    storage = open_storage(ArchiveLocation(tmp_path, bucket.url))
    closed = Previous("edge-1-000001", "0" * 64, NOON)
    for writer, opened in (("edge", "edge-1-000002"), ("stopped", None)):
        head = WriterHead(writer, writer, NOON, closed, opened)
        storage.put(head_path(writer), head.signed(None).to_json())

    assert main(["archive", "show", bucket.url, "x"]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"x: is in no row of {bucket.url}"
    assert last.startswith("not in this answer: rows of edge since 2026-03-14 12:00:00 UTC, whose")


def test_a_list_of_a_name_says_that_older_rows_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [received([number], name="a/b", time=NOON + number) for number in range(MAX_NAMED + 1)]
    archive(tmp_path, *rows)

    assert main(["archive", "show", str(tmp_path), "--name", "a/b"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "only the newest 50 rows with this name; --date D lists those of another date"
    assert len(lines) == MAX_NAMED
    assert lines[0].startswith("2026-03-14 12:00:00.000001 UTC")
    assert main(["archive", "show", str(tmp_path), "--name", "a/b", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == MAX_NAMED
