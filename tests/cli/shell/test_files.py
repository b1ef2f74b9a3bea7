"""The command `files`."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.cli.shell.files import FILES

ROOT = Path(__file__).parents[3]


def test_the_files_are_those_of_the_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "files"

    assert main(["files", str(folder)]) == 0

    assert capsys.readouterr().out.splitlines() == [str(folder / each) for each in FILES]
    for path in filter(Path.is_file, folder.rglob("*")):
        assert path.read_bytes() == (ROOT / path.relative_to(folder)).read_bytes()
    assert os.access(folder / "deploy/spark-submit.sh", os.X_OK)
    assert main(["check", "--without-secrets", str(folder / "mappings/pairs/mqtt-ems.yaml")]) == 0


def test_a_folder_with_files_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").touch()

    assert main(["files", str(tmp_path)]) == 2

    assert capsys.readouterr().err == (
        f"gateway: {tmp_path}: has files already; name a new folder\n"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_the_wheel_has_the_files() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]

    wheel = built["targets"]["wheel"]["force-include"]
    assert wheel == {each: f"gateway/files/{each}" for each in FILES}
    included = tuple(built["targets"]["sdist"]["include"])
    assert [each for each in FILES if not f"/{each}".startswith(included)] == []
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    for name in FILES:
        assert f"!{name}" in ignored, name
        assert f" {name} " in dockerfile, name
