from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.lookup.name_file import NameFile, read_names
from gateway.errors import ArchiveError


def test_names_of_all_gateways_are_read_again(tmp_path: Path) -> None:
    for gateway, digest in (("one", "~a"), ("two", "~b")):
        names = NameFile(tmp_path, gateway)
        names.write(digest, ("größe", "a.b", ""))
        names.close()

    assert read_names(tmp_path) == {"~a": ("größe", "a.b", ""), "~b": ("größe", "a.b", "")}


def test_a_torn_line_is_ignored_and_the_file_stays_usable(tmp_path: Path) -> None:
    names = NameFile(tmp_path, "one")
    names.write("~a", ("x",))
    names.close()
    (file,) = (tmp_path / "_names").iterdir()
    file.write_bytes(file.read_bytes() + b'{"digest": "~b", "lev')

    again = NameFile(tmp_path, "one")
    again.write("~c", ("y",))
    again.close()

    assert read_names(tmp_path) == {"~a": ("x",), "~c": ("y",)}


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ArchiveError, match="cannot be written"):
        NameFile(tmp_path / "file", "one")


def test_an_archive_without_names_has_none(tmp_path: Path) -> None:
    assert read_names(tmp_path) == {}
