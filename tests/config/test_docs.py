"""`docs/settings.md` and `docs/configuration.md` against the declarations of the settings."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args

import pytest
import yaml

from docs.settings_tables import DECLARATIONS
from docs.tables import ROOT, with_tables
from gateway.config.load import load
from gateway.config.schema import SECTIONS
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.setting import fields_by_key, type_hints
from tests.schema_validation import configuration_validator

SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_every_declaration_has_a_table() -> None:
    tables = re.findall(r"<!-- table: settings (\w+) -->", SETTINGS)

    assert sorted(tables) == sorted(DECLARATIONS)


def test_every_section_and_kind_and_mapping_inside_them_is_declared() -> None:
    pending: list[object] = [*SECTIONS.values(), *(k.settings for k in ENDPOINT_KINDS.values())]
    found: set[object] = set()
    while pending:
        kind = pending.pop()
        inner = type_hints(kind).values() if isinstance(kind, type) and is_dataclass(kind) else ()
        found |= {kind} if inner else set()
        pending += [*inner, *get_args(kind)]

    assert found <= set(DECLARATIONS.values())


@pytest.mark.parametrize("name", DECLARATIONS)
def test_a_table_has_a_row_for_each_key(name: str) -> None:
    text = with_tables(f"<!-- table: settings {name} -->\n<!-- end of table -->")
    keys = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    own = {"name"} if name in ENDPOINT_KINDS else set()

    assert keys == [key for key in fields_by_key(DECLARATIONS[name]) if key not in own]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_page_matches_the_schema(example: str) -> None:
    assert [
        error.message for error in configuration_validator().iter_errors(yaml.safe_load(example))
    ] == []


def test_the_first_example_of_the_page_loads(tmp_path: Path) -> None:
    secret = tmp_path / "mqtt"
    secret.write_text("secret\n")
    file = tmp_path / "gateway.yaml"
    file.write_text(EXAMPLES[0].replace("/run/secrets/mqtt", str(secret)))

    assert [route.name for route in load(file, {"COLLECTOR_TOKEN": "t"}).routes] == ["telemetry"]
