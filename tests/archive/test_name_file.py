from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.archive import name_store
from gateway.archive.name_store import NameFile
from gateway.errors import ArchiveError
from tests.small_disks import mounted


def test_each_name_is_a_line_behind_a_torn_one(tmp_path: Path) -> None:
    names = NameFile(tmp_path, "one")
    names.write({"~a": ("größe", "a.b", "")})
    names.close()
    file = tmp_path / "_names" / "one.jsonl"
    file.write_bytes(file.read_bytes() + b'{"digest": "~b", "lev')

    again = NameFile(tmp_path, "one")
    again.write({"~c": ("y",)})
    size = again.size
    again.close()

    _, first, torn, last = file.read_bytes().splitlines()
    assert json.loads(first)["levels"] == ["größe", "a.b", ""]
    assert torn == b'{"digest": "~b", "lev'
    assert json.loads(last)["digest"] == "~c"
    assert size == file.stat().st_size


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ArchiveError, match="cannot be written"):
        NameFile(tmp_path / "file", "one")


def test_the_name_of_a_new_file_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(name_store, "sync_folder", synced.append)

    NameFile(tmp_path, "one").close()

    assert synced == [tmp_path / "_names"]


def test_a_full_disk_is_reported_once(tmp_path: Path) -> None:
    with mounted(tmp_path, 1) as disk:
        names = NameFile(disk, "one")

        with pytest.raises(ArchiveError, match="No space left"):
            names.write({"~a": ("x" * (2 << 20),)})

        names.close()  # the name that is not stored is not used
