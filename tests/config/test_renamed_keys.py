"""Keys of earlier versions: refused with the new key, by the loader and by the JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml

from gateway.config.json_schema import json_schema
from gateway.config.load import load
from gateway.config.schema import SECTIONS, CommonEndpointSettings
from gateway.config.values.setting_fields import renamed_keys, type_hints
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.errors import ConfigError, ConfigErrors

ROUTE = "routes: {r: {from: {endpoint: a, pattern: x%s}, to: {endpoint: a, template: y%s}}}\n"
PLAIN = ROUTE % ("", "")

RENAMED = [
    ("endpoint", "place: x", ("broker_id",)),
    ("endpoint", "length: shorten", ("on_too_long",)),
    ("endpoint", "escape: reject", ("on_unmappable",)),
    ("endpoint", "echo_seconds: 3", ("echo_window",)),
    ("mqtt", "receive_maximum: 10", ("receive_window",)),
    ("mqtt", "inflight: 10", ("send_window",)),
    ("mqtt", "queue_bytes: 100000", ("receive_window_bytes",)),
    ("jms", "window: 10", ("receive_window", "send_window")),
    ("jms", "window_bytes: 100000", ("receive_window_bytes", "send_window_bytes")),
    ("solace", "queue_bytes: 100000", ("receive_window_bytes",)),
    ("yami4", "unsettled_bytes: 100000", ("receive_window_bytes",)),
    ("yami4", "window: 10", ("send_window",)),
    ("tags", "along: [b]", ("require_tags",)),
    ("tags", "others: p", ("unused_tags_property",)),
    ("to", "length: shorten", ("on_too_long",)),
    ("to", "escape: reject", ("on_unmappable",)),
    ("to", "identify: true", ("add_message_id",)),
    ("gateway", "suspect_after: 3", ("isolate_after",)),
    ("gateway", "answer_seconds: 3", ("stuck_after_seconds",)),
]


def text_with(section: str, line: str) -> str:
    """A configuration that is legal but for `line`, which stands in `section`."""
    kind = section if section in ENDPOINT_KINDS else "yami4" if section == "tags" else "mqtt"
    inside = f", {line}" if section in {"endpoint", *ENDPOINT_KINDS} else ""
    source = f", tags: {{mode: first, {line}}}" if section == "tags" else ""
    target = f", {line}" if section == "to" else ""
    process = f"gateway: {{{line}}}\n" if section == "gateway" else ""
    return f"endpoints: {{a: {{kind: {kind}{inside}}}}}\n{ROUTE % (source, target)}{process}"


def findings(folder: Path, text: str) -> list[ConfigError]:
    file = folder / "gateway.yaml"
    file.write_text(text)
    with pytest.raises(ConfigErrors) as caught:
        load(file, {})
    return caught.value.findings


@pytest.mark.parametrize(("section", "line", "new"), RENAMED)
def test_an_old_key_is_refused_with_its_new_name(
    tmp_path: Path, section: str, line: str, new: tuple[str, ...]
) -> None:
    old = line.partition(":")[0]
    text = text_with(section, line)
    (found,) = findings(tmp_path, text)

    row = next(number for number, each in enumerate(text.splitlines(), 1) if line in each)
    column = text.splitlines()[row - 1].index(line) + 1
    assert (found.rule, found.line, found.column) == ("renamed-field", row, column)
    assert found.reason == f"{old!r} is now called {' and '.join(map(repr, new))}"


@pytest.mark.parametrize(("section", "line", "new"), RENAMED)
def test_the_schema_accepts_the_new_key_only(section: str, line: str, new: tuple[str, ...]) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    _, _, value = line.partition(":")

    assert not validator.is_valid(yaml.safe_load(text_with(section, line)))
    for key in new:
        assert validator.is_valid(yaml.safe_load(text_with(section, f"{key}:{value}")))


def test_an_old_key_among_the_defaults_of_a_file_is_refused(tmp_path: Path) -> None:
    text = f"endpoints: {{a: {{kind: mqtt}}}}\n{PLAIN}defaults: {{to: {{length: shorten}}}}\n"

    (found,) = findings(tmp_path, text)
    assert (found.rule, found.line) == ("renamed-field", 3)


def test_every_renamed_key_is_in_the_table() -> None:
    declared = {(old, new) for kind in _kinds() for old, new in renamed_keys(kind).items()}

    assert declared == {(line.partition(":")[0], new) for _, line, new in RENAMED}


def test_no_old_key_has_a_new_meaning() -> None:
    for kind in (each.settings for each in ENDPOINT_KINDS.values()):
        words = {*type_hints(kind), *type_hints(CommonEndpointSettings)}
        assert words.isdisjoint(renamed_keys(kind))
        assert words.isdisjoint(renamed_keys(CommonEndpointSettings))


def _kinds() -> Iterator[type]:
    """Every settings dataclass, those inside others included."""
    pending: list[Any] = [*SECTIONS.values(), CommonEndpointSettings]
    pending += [each.settings for each in ENDPOINT_KINDS.values()]
    while pending:
        kind = pending.pop()
        if is_dataclass(kind) and isinstance(kind, type):
            yield kind
            pending += type_hints(kind).values()
        else:
            pending += get_args(kind)
