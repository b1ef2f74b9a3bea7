"""The JSON Schema and the loader agree about mutated mapping files."""

from __future__ import annotations

import copy
import re
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.load import load
from gateway.errors import ConfigErrors
from tests.schema_validation import configuration_validator

ROOT = Path(__file__).parents[2]
TEXTS = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "mappings").rglob("*.yaml"))]
ENVIRONMENT = {name: "value.example" for text in TEXTS for name in re.findall(r"{env:(\w+)}", text)}
ENVIRONMENT["EMS_PORT"] = "7222"
SCHEMA_RULES = {  # rules of the loader that a schema can express
    "type", "unknown-field", "unknown-section", "missing-field", "choice", "range", "bad-name",
    "plain-secret",
}  # fmt: skip
REPLACEMENTS: st.SearchStrategy[object] = st.sampled_from((
    None, True, False, 0, 1, -1, 7, 1.5, 10**30, "", "x", "yes", "1", "1.5", "-1", "both", "a b",
    [], ["x"], [1], [[]], [None], {}, {"x": 1}, {"name": "x"}, "${env:EMS_PASSWORD}", "mqtt",
    "a/{x}", "shorten", "null", "1_0", " 1", "0x10", "1e3", "1" * 5000, "off", 8.0, "true", "1:30",
))  # fmt: skip
KEYS = st.sampled_from((
    "x", "to", "from", "kind", "endpoint", "pattern", "headers", "limits", "tls", "port", "name",
    "template", "set", "path", "tests", "route", "defaults", "include",
))  # fmt: skip


@cache
def files() -> list[dict[str, Any]]:
    return [yaml.safe_load(text) for text in TEXTS]


def key_paths(value: object, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the key paths of `value` and of all values inside it."""
    yield at
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield from key_paths(inner, (*at, key))


@st.composite
def mutants(draw: st.DrawFn) -> dict[str, Any]:
    """One of the files, changed in one or two places."""
    content: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(files())))
    for _ in range(draw(st.integers(1, 2))):
        if not (paths := [each for each in key_paths(content) if each]):
            break
        at = draw(st.sampled_from(paths))
        parent: Any = content
        for key in at[:-1]:
            parent = parent[key]
        match draw(st.sampled_from(("value", "value", "drop", "key", "wrap"))):
            case "value":
                parent[at[-1]] = copy.deepcopy(draw(REPLACEMENTS))
            case "drop":
                del parent[at[-1]]
            case "key" if isinstance(parent, dict):
                parent[draw(KEYS)] = copy.deepcopy(draw(REPLACEMENTS))
            case _:
                parent[at[-1]] = [parent[at[-1]]]
    return content


VALUES = [  # a value as written, and whether both accept it
    ("port: 1883", True), ("port: '1883'", False), ("port: 0x75b", True), ("port: 1_883", True),
    ("port: 1883.0", True), ("port: 1883.5", False), ("port: 1e3", False), ("port: ' 1'", False),
    ("port: -1", False), ("port: true", False), ("port:", False), ("port: [1]", False),
    ("port: '${env:EMS_PORT}'", True), ("port: 11:40", True), ("port: \u0661", False),
    ("version: 5", True), ("version: '5'", True), ("version: 5.1", False), ("version: 4", False),
    ("qos: 1", True), ("qos: '1'", False), ("qos: 3", False),
    ("tls: {verify: off}", True), ("tls: {verify: 'off'}", False), ("tls: {verify: 0}", False),
    ("keepalive: .inf", False), ("host: 7", True), ("host: [x]", False), ("host: true", True),
]  # fmt: skip


@pytest.mark.parametrize(("line", "good"), VALUES)
def test_the_schema_and_the_loader_read_a_value_alike(line: str, good: bool) -> None:
    text = (
        f"endpoints: {{a: {{kind: mqtt, host: x, {line}}}}}\n".replace("host: x, host", "host")
        + "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}\n"
    )
    assert configuration_validator().is_valid(yaml.safe_load(text)) is good
    assert (not loader_findings(text)) is good


@given(mutants())
def test_the_schema_and_the_loader_agree_about_a_mutated_file(
    content: dict[str, Any],
) -> None:
    errors = [
        f"{error.json_path}: {error.message[:200]}"
        for error in configuration_validator().iter_errors(content)
    ]
    found = loader_findings(content)

    if errors:
        assert found, errors
    else:
        assert not [each for each in found if is_schema_fault(each)], found


def loader_findings(content: object) -> list[str]:
    """Return the findings of the loader for this content or text."""
    text = content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gateway.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            load(file, ENVIRONMENT)
        except ConfigErrors as errors:
            return [f"{each.rule} {each}" for each in errors.findings]
    return []


def is_schema_fault(finding: str) -> bool:
    """Return whether a schema can see the fault, unlike one in a selector or a reference."""
    rule, _, text = finding.partition(" ")
    return rule in SCHEMA_RULES and "selector:" not in text and "${" not in text
