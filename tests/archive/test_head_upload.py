"""The upload of heads: one that another machine left is set aside, at a place of its own."""

from __future__ import annotations

from pathlib import Path

from gateway.archive.durable import make_folders
from gateway.archive.heads import WriterHead, head_path, upload_heads
from gateway.archive.storage import LocalStorage


def test_a_head_that_names_another_writer_chooses_no_place(tmp_path: Path) -> None:
    """A client that may write one head in a bucket could else choose any place in it."""
    archive, buffer = tmp_path / "archive", tmp_path / "buffer"
    own, forged = WriterHead("g", "g", 1), WriterHead("../../else/g", "g", 1)
    for root, head in ((buffer, own), (archive, forged)):
        path = root / head_path("g")
        make_folders(path.parent)
        path.write_bytes(head.to_json())

    upload_heads(LocalStorage(archive), buffer)

    written = {each.relative_to(tmp_path) for each in tmp_path.rglob("*") if each.is_file()}
    heads = Path("archive") / head_path("g").parent
    assert {each for each in written if each.parts[0] != "buffer"} == {
        heads / "g.json",
        heads / "g.damaged",
    }
