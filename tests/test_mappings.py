"""Sample mappings: they pass `gateway check` and their own tests, and match the JSON Schema."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
import yaml

from gateway.cli import main
from gateway.endpoints.registry import starters
from tests.schema_validation import configuration_validator

ROOT = Path(__file__).parents[1]
MAPPINGS = sorted((ROOT / "mappings").rglob("*.yaml"))
DEPLOYED = sorted(
    file
    for file in (ROOT / "deploy").glob("*.yaml")
    if "\nroutes:" in file.read_text(encoding="utf-8")  # other files are for other programs
)
SYSTEMS = tuple(dict.fromkeys(starter.dialect for _, starter in starters().values()))
STORIES = (
    "plant-telemetry",
    "market-data",
    "control-tags",
    "request-reply",
    "fields-to-names",
    "picked-fields",
    "telemetry-lake",
    "names-back",
    "dashboards",
    "migration",
)
INDEX = (ROOT / "mappings/README.md").read_text(encoding="utf-8")


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("config", MAPPINGS + DEPLOYED, ids=_name)
def test_a_file_has_no_error_and_no_warning(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["check", str(config), "--strict", "--without-secrets"])

    printed = capsys.readouterr()
    assert status == 0, printed.out + printed.err


@pytest.mark.parametrize("config", MAPPINGS, ids=_name)
def test_a_mapping_passes_its_tests(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["test", str(config), "--without-secrets"])

    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("file", MAPPINGS + DEPLOYED, ids=_name)
def test_a_file_matches_the_schema(file: Path) -> None:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))

    errors = configuration_validator().iter_errors(content)

    assert [error.message for error in errors] == []


@pytest.mark.parametrize("file", MAPPINGS, ids=_name)
def test_a_mapping_is_in_the_index_and_refers_to_no_files(file: Path) -> None:
    text = file.read_text(encoding="utf-8")

    assert f"({file.relative_to(ROOT / 'mappings')})" in INDEX
    assert "${file:" not in text


def test_every_pair_of_systems_and_every_story_has_a_mapping() -> None:
    found = {file.stem for file in MAPPINGS}
    pairs = sorted(sorted(name.split("-")) for name in found - {*STORIES})

    assert pairs == sorted(map(sorted, combinations(SYSTEMS, 2)))
    assert {*STORIES} <= found
