"""A topic and a key in a file, at a source and at a target."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway.config.load import load
from gateway.dialects.base import parse_subject
from gateway.dialects.systems.kafka import KAFKA
from gateway.dialects.systems.mqtt import MQTT
from gateway.errors import ConfigErrors, TranslationError
from gateway.model.subject import Subject
from tests.config.test_load import findings
from tests.schema_validation import configuration_validator

ENDPOINTS = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  lake: {kind: memory, dialect: kafka}
"""
BOTH = """\
routes:
  r:
    from: {endpoint: plant, pattern: "plant/{line}/{rest...}"}
    to: {endpoint: lake, topic: "plant.{line}", key: "{rest...}"}
    direction: both
"""
PLANT = 'from: {endpoint: plant, pattern: "a/{x}"}'
NAMES = [
    ("plant/7/a/b", "plant.7:a.b"),
    ("plant/7", "plant.7:"),
    ("plant/7/", "plant.7:%-"),
    ("plant/7//", "plant.7:."),
    ("plant/line 7/a b/c.d", "plant.line_x20-7:a b.c%2Ed"),
    ("plant/$7/$a", "plant._x24-7:$a"),
    ("plant/_x20-/%2E", "plant._xx20-:%252E"),
]


def _written(folder: Path, text: str) -> Path:
    file = folder / "gateway.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(("here", "there"), NAMES)
def test_a_name_becomes_topic_and_key_and_comes_back(tmp_path: Path, here: str, there: str) -> None:
    forward, back = load(_written(tmp_path, ENDPOINTS + BOTH)).routes
    names = ((forward, MQTT, here, there), (back, KAFKA, there, here))

    for route, dialect, name, made in names:
        levels = parse_subject(name, dialect).levels
        assert route.takes(levels)
        captures = route.source.capture(levels)
        assert route.targets[0].name_for(Subject(levels), captures) == made


@pytest.mark.parametrize("name", ["plant/:/a", "plant/7/a/:", "plant/7/:"])
def test_a_capture_does_not_move_the_boundary(tmp_path: Path, name: str) -> None:
    """A publisher would choose another topic than the template."""
    forward, _ = load(_written(tmp_path, ENDPOINTS + BOTH)).routes
    levels = parse_subject(name, MQTT).levels

    with pytest.raises(TranslationError, match="nowhere else") as caught:
        forward.targets[0].name_for(Subject(levels), forward.source.capture(levels))
    assert caught.value.rule == "boundary"


@pytest.mark.parametrize(
    ("source", "taken", "left"),
    [
        ('topic: "a.{x}"', ["a.b", "a.b:", "a.b:k"], ["a:k", "a.b.c:k", "a"]),
        ('topic: "a.{x...}"', ["a.b", "a.b.c:k"], ["a", "a:k"]),
        ('topic: "a.b", key: "{k...}"', ["a.b:", "a.b:k.l"], ["a.b", "a.c:k"]),
        ('topic: "a.{x...}", key: "{k}.l"', ["a.b.c:k.l"], ["a.b.c:l", "a.b.c"]),
    ],
)
def test_a_source_without_a_key_takes_every_key(
    tmp_path: Path, source: str, taken: list[str], left: list[str]
) -> None:
    text = f"routes: {{r: {{from: {{endpoint: lake, {source}}}, to: {{endpoint: plant}}}}}}"
    (route,) = load(_written(tmp_path, ENDPOINTS + text)).routes

    for name in (*taken, *left):
        assert route.takes(parse_subject(name, KAFKA).levels) is (name in taken), name


def test_each_part_has_captures_of_its_own(tmp_path: Path) -> None:
    text = (
        'routes: {r: {from: {endpoint: lake, topic: "a.*.{t...}", key: "*.{k...}"},'
        ' to: {endpoint: plant, template: "{1}/{t...}/:/{3}/{k...}"}}}'
    )
    (route,) = load(_written(tmp_path, ENDPOINTS + text)).routes
    levels = parse_subject("a.b.c.d:e.f.g", KAFKA).levels
    captures = route.source.capture(levels)

    assert captures == {
        "1": ("b",), "t": ("c", "d"), "2": ("c", "d"), "3": ("e",), "k": ("f", "g"), "4": ("f", "g")
    }  # fmt: skip
    assert route.targets[0].name_for(Subject(levels), captures) == "b/c/d/:/e/f/g"


FAULTS = [
    pytest.param(
        PLANT, 'to: {endpoint: lake, topic: "a", template: "b"}',
        "both are written", "leave `template` out", id="target-twice",
    ),
    pytest.param(
        PLANT, 'to: {endpoint: lake, key: "{x}"}',
        "beside a `topic` only", "write `topic`", id="target-key-alone",
    ),
    pytest.param(
        'from: {endpoint: plant, topic: "a"}', "to: {endpoint: lake}",
        "name a place of kafka, and this is mqtt", "write the whole name as `pattern`",
        id="source-without-parts",
    ),
    pytest.param(
        'from: {endpoint: lake, topic: "a.{x}"}', 'to: {endpoint: plant, topic: "a"}',
        "name a place of kafka, and this is mqtt", "write the whole name as `template`",
        id="target-without-parts",
    ),
    pytest.param(
        'from: {endpoint: lake, topic: "a", pattern: "b"}', "to: {endpoint: plant}",
        "both are written", "leave `pattern` out", id="source-twice",
    ),
    pytest.param(
        'from: {endpoint: lake, pattern: "a", key: "b"}', "to: {endpoint: plant}",
        "beside a `topic` only", "write `topic` in place of `pattern`", id="source-key-alone",
    ),
    pytest.param(
        PLANT, 'to: {endpoint: lake, topic: "a:{x}"}',
        "a topic has no ':'", "as the `key`", id="colon-in-a-topic",
    ),
    pytest.param(
        'from: {endpoint: lake, topic: "a.{x}", key: "{x}"}', "to: {endpoint: plant}",
        "'x' names two captures", "", id="one-capture-twice",
    ),
    pytest.param(
        'from: {endpoint: lake, topic: "a.{x}", key: "b{k}"}', "to: {endpoint: plant}",
        "at 7: {k} does not fill its level", "", id="offset-in-a-key",
    ),
    pytest.param(
        "from: {endpoint: lake}", "to: {endpoint: plant}", "missing field 'pattern'", "",
        id="no-pattern",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "reason", "hint"), FAULTS)
def test_parts_that_do_not_fit_are_one_finding(
    tmp_path: Path, source: str, target: str, reason: str, hint: str
) -> None:
    (found,) = findings(tmp_path, f"{ENDPOINTS}routes:\n  r:\n    {source}\n    {target}\n")

    assert reason in found.reason
    assert hint in found.hint
    assert found.column > 5


@pytest.mark.parametrize(
    ("source", "good"),
    [
        ('endpoint: lake, topic: "a"', True),
        ('endpoint: lake, topic: "a", key: "b"', True),
        ('endpoint: lake, pattern: "a"', True),
        ("endpoint: lake", False),
        ('endpoint: lake, key: "a"', False),
    ],
)
def test_the_schema_knows_topic_and_key(tmp_path: Path, source: str, good: bool) -> None:
    text = f"{ENDPOINTS}routes: {{r: {{from: {{{source}}}, to: {{endpoint: plant}}}}}}\n"
    try:
        load(_written(tmp_path, text))
        accepted = True
    except ConfigErrors:
        accepted = False

    assert configuration_validator().is_valid(yaml.safe_load(text)) is good
    assert accepted is good


def test_swapped_pattern_and_template_are_told(tmp_path: Path) -> None:
    route = '{from: {endpoint: plant, template: "a"}, to: {endpoint: lake, pattern: "b"}}'
    found = findings(tmp_path, f"{ENDPOINTS}routes:\n  r: {route}\n")

    assert [each.hint for each in found if each.rule == "unknown-field"] == [
        "a `template` belongs to `to`; write the `pattern` of the source here",
        "a `pattern` belongs to `from`; write the `template` of the target here",
    ]
