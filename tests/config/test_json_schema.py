from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway.config.json_schema import json_schema
from gateway.config.load import load
from gateway.errors import ConfigErrors
from tests.schema_validation import configuration_validator, validator

ROUTE = "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}"

SAME = [  # a text, and whether both the loader and the schema accept it
    pytest.param(f"endpoints: {{a: {{kind: mqtt}}}}\n{ROUTE}", True, id="least"),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, port: 18, qos: 2}}}}\n{ROUTE}", True, id="number"),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, port: 70000}}}}\n{ROUTE}", False, id="range"),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, port: x}}}}\n{ROUTE}", False, id="not-a-number"),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, qos: 3}}}}\n{ROUTE}", False, id="choice"),
    pytest.param(f"endpoints: {{a: {{kind: mqqt}}}}\n{ROUTE}", False, id="kind"),
    pytest.param(f"endpoints: {{a: {{}}}}\n{ROUTE}", False, id="no-kind"),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, hots: x}}}}\n{ROUTE}", False, id="unknown-field"),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, password: plain}}}}\n{ROUTE}", False, id="secret"),
    pytest.param(
        f"endpoints: {{a: {{kind: mqtt, password: '${{env:P}}'}}}}\n{ROUTE}", True, id="reference"
    ),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, tls: {{verify: no}}}}}}\n{ROUTE}", True, id="tls"),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, tls: {{verfy: 1}}}}}}\n{ROUTE}", False, id="typo"),
    pytest.param(f"endpoints: {{a b: {{kind: mqtt}}}}\n{ROUTE}", False, id="name"),
    pytest.param("endpoints: {a: {kind: mqtt}}\nroutes: {r: {from: []}}", False, id="no-to"),
    pytest.param(
        "endpoints: {a: {kind: mqtt}}\nroutes: {r: {from: [{endpoint: a, pattern: x}], "
        "to: [{endpoint: a, template: y, on_too_long: shorten}]}}", True, id="lists",
    ),
    pytest.param(
        "endpoints: {a: {kind: mqtt}}\n"
        "routes: {r: {from: [], to: {endpoint: a, template: y}}}", False, id="no-source",
    ),
    pytest.param(
        "endpoints: {a: {kind: mqtt}}\n"
        "routes: {r: {from: {endpoint: a, pattern: x}, to: []}}", False, id="no-target",
    ),
    pytest.param(f"endpoints: {{a: {{kind: mqtt, allow: []}}}}\n{ROUTE}", False, id="no-allow"),
    pytest.param(
        "endpoints: {a: {kind: mqtt}}\n"
        "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: []}}}",
        False,
        id="no-template",
    ),
    pytest.param(f"endpoints: {{a: {{kind: mqtt}}}}\n{ROUTE}\nachive: {{}}", False, id="section"),
    pytest.param(f"endpoints: {{a: {{kind: mqtt}}}}\n{ROUTE}\narchive: {{}}", False, id="no-path"),
    pytest.param(
        f"endpoints: {{a: {{kind: mqtt}}}}\n{ROUTE}\narchive: {{path: x, sync: 1}}", False, id="s"
    ),
]  # fmt: skip


def loader_accepts(file: Path) -> bool:
    try:
        load(file, {"P": "secret"})
    except ConfigErrors:
        return False
    return True


@pytest.mark.parametrize(("text", "good"), SAME)
def test_the_schema_and_the_loader_agree(tmp_path: Path, text: str, good: bool) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    validator = configuration_validator()

    assert validator.is_valid(yaml.safe_load(text)) is good
    assert loader_accepts(file) is good


def test_the_schema_is_legal_and_describes_each_field() -> None:
    schema = json_schema()

    validator(schema)  # it is checked
    for name, field in schema["properties"]["archive"]["properties"].items():
        assert field["description"], name
