"""Notes about topics and their keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load
from gateway.errors import ConfigErrors

CONFIG = """\
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: a}}
  lake: {{kind: memory, dialect: kafka, broker: b{endpoint}}}
routes:
  r:
    from: {{endpoint: plant, pattern: "a/{{x}}/{{r...}}"}}
    to: [{targets}]
"""


def _file(folder: Path, *targets: str, endpoint: str = "") -> Path:
    path = folder / "gateway.yaml"
    made = ", ".join(f"{{endpoint: lake, {each}}}" for each in targets)
    path.write_text(CONFIG.format(targets=made, endpoint=endpoint))
    return path


@pytest.mark.parametrize(
    ("target", "noted"),
    [
        ('topic: "a.{x}", lossy: true', True),
        ('topic: "a.{x}", key: "{r...}"', False),
        ('topic: "a", key: "{x}.{r...}"', False),
        ('topic: "a.{x}.{r...}"', True),
        ('template: "a.{x}:{r...}"', False),
    ],
)
def test_a_topic_without_a_key_keeps_no_order(tmp_path: Path, target: str, noted: bool) -> None:
    found = [each for each in examine(load(_file(tmp_path, target))) if each.rule == "no-key"]

    assert [each.severity for each in found] == ["note"] * noted
    assert all("they keep no order there" in each.reason for each in found)


@pytest.mark.parametrize(
    ("topics", "noted"),
    [
        (("a.b", "a_b"), True),
        (("a.b", "a.b"), False),
        (("a.b", "a.c"), False),
        (("a.{x}", "a_{x}"), False),  # a capture tells no topic
    ],
)
def test_topics_that_metrics_mix_up_are_noted(
    tmp_path: Path, topics: tuple[str, str], noted: bool
) -> None:
    targets = [f'topic: "{each}", key: "{{x}}.{{r...}}"' for each in topics]
    rules = [each.rule for each in examine(load(_file(tmp_path, *targets)))]

    assert rules.count("metrics-name") == noted


def test_names_beyond_the_topic_get_a_hint_without_short_names(tmp_path: Path) -> None:
    target = 'topic: "a.{x}", key: "{r...}"'
    for more, severity in (("", "warning"), (", on_too_long: refuse", "note")):
        rules = examine(load(_file(tmp_path, target + more)))
        (found,) = (each for each in rules if each.rule == "past-limit")
        assert found.severity == severity
        assert "shorten'" not in found.hint


@pytest.mark.parametrize(
    ("target", "endpoint"), [(", on_too_long: shorten", ""), ("", ", on_too_long: shorten")]
)
def test_a_topic_has_no_short_form(tmp_path: Path, target: str, endpoint: str) -> None:
    text = f'topic: "a.{{x}}", key: "{{r...}}"{target}'
    with pytest.raises(ConfigErrors) as caught:
        load(_file(tmp_path, text, endpoint=endpoint))

    (found,) = caught.value.findings
    assert "a topic has no short form" in found.reason
    assert found.column > 10


def test_an_endpoint_allows_topics_whatever_the_key(tmp_path: Path) -> None:
    target = 'topic: "a.{x}", key: "{r...}"'
    path = _file(tmp_path, target, endpoint=', allow: ["a.>"]')

    assert {each.rule for each in examine(load(path))} <= {"past-limit", "memory-target"}
