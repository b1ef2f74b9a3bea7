"""What an editor marks and what the loader refuses are the same, in files that are nearly right."""

from __future__ import annotations

import copy
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.json_schema import json_schema
from gateway.config.load import load
from gateway.errors import ConfigErrors

ROOT = Path(__file__).parents[2]
TEXTS = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "mappings").rglob("*.yaml"))]
FILES = [yaml.safe_load(text) for text in TEXTS]
ENVIRONMENT = {name: "value.example" for text in TEXTS for name in re.findall(r"{env:(\w+)}", text)}
ENVIRONMENT["EMS_PORT"] = "7222"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())
SHAPE = {  # rules of the loader that a schema can tell
    "type", "unknown-field", "unknown-section", "missing-field", "choice", "range", "bad-name",
    "plain-secret",
}  # fmt: skip
JUNK: st.SearchStrategy[object] = st.sampled_from((
    None, True, False, 0, 1, -1, 7, 1.5, 10**30, "", "x", "yes", "1", "1.5", "-1", "both", "a b",
    [], ["x"], [1], [[]], [None], {}, {"x": 1}, {"name": "x"}, "${env:EMS_PASSWORD}", "mqtt",
    "a/{x}", "shorten", "null", "1_0", " 1", "0x10", "1e3", "1" * 5000, "off", 8.0, "true", "1:30",
))  # fmt: skip
KEYS = st.sampled_from((
    "x", "to", "from", "kind", "endpoint", "pattern", "headers", "limits", "tls", "port", "name",
    "template", "set", "path", "tests", "route", "defaults", "include",
))  # fmt: skip


def places(value: object, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values below `value`, and to itself."""
    yield at
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield from places(inner, (*at, key))


@st.composite
def mutants(draw: st.DrawFn) -> dict[str, Any]:
    """One of the files, with something else in one place or two."""
    content: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(FILES)))
    for _ in range(draw(st.integers(1, 2))):
        if not (ways := [each for each in places(content) if each]):
            break
        at = draw(st.sampled_from(ways))
        around: Any = content
        for key in at[:-1]:
            around = around[key]
        match draw(st.sampled_from(("value", "value", "drop", "key", "wrap"))):
            case "value":
                around[at[-1]] = copy.deepcopy(draw(JUNK))
            case "drop":
                del around[at[-1]]
            case "key" if isinstance(around, dict):
                around[draw(KEYS)] = copy.deepcopy(draw(JUNK))
            case _:
                around[at[-1]] = [around[at[-1]]]
    return content


WRITTEN = [  # a value as it is written, and whether both take it
    ("port: 1883", True), ("port: '1883'", False), ("port: 0x75b", True), ("port: 1_883", True),
    ("port: 1883.0", True), ("port: 1883.5", False), ("port: 1e3", False), ("port: ' 1'", False),
    ("port: -1", False), ("port: true", False), ("port:", False), ("port: [1]", False),
    ("port: '${env:EMS_PORT}'", True), ("port: 11:40", True), ("port: \u0661", False),
    ("version: 5", True), ("version: '5'", True), ("version: 5.1", False), ("version: 4", False),
    ("qos: 1", True), ("qos: '1'", False), ("qos: 3", False),
    ("tls: {verify: off}", True), ("tls: {verify: 'off'}", False), ("tls: {verify: 0}", False),
    ("keepalive: .inf", False), ("host: 7", True), ("host: [x]", False), ("host: true", True),
]  # fmt: skip


@pytest.mark.parametrize(("line", "good"), WRITTEN)
def test_the_schema_and_the_loader_read_a_value_alike(line: str, good: bool) -> None:
    text = (
        f"endpoints: {{a: {{kind: mqtt, host: x, {line}}}}}\n".replace("host: x, host", "host")
        + "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}\n"
    )
    assert VALIDATOR.is_valid(yaml.safe_load(text)) is good
    assert (not refused(text)) is good


@given(mutants())
def test_the_schema_and_the_loader_agree_about_what_is_nearly_right(
    content: dict[str, Any],
) -> None:
    marked = [
        f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(content)
    ]
    found = refused(content)

    if marked:
        assert found, marked
    else:
        assert not [each for each in found if of_shape(each)], found


def refused(content: object) -> list[str]:
    """The findings of the loader, of a file with this content or text."""
    text = content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gateway.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            load(file, ENVIRONMENT)
        except ConfigErrors as errors:
            return [f"{each.rule} {each}" for each in errors.findings]
    return []


def of_shape(finding: str) -> bool:
    """Whether it is about what a schema sees: not the text of a selector, nor of a reference."""
    rule, _, text = finding.partition(" ")
    return rule in SHAPE and "selector:" not in text and "${" not in text
