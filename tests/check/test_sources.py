"""Doubts about the sources of routes: what a broker drops."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load
from gateway.errors import ConfigError

CONFIG = """\
endpoints:
  plant: {{{plant}}}
  erp: {{{erp}}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "{pattern}"}}
    to: {{endpoint: erp, template: "erp/{{rest...}}"{more}}}
"""
MQTT = "kind: mqtt, host: localhost"


def found(  # the parts of one configuration
    folder: Path,
    rule: str,
    *,
    plant: str = MQTT,
    erp: str = "kind: mqtt, host: erp.example",
    pattern: str = "orders/{rest...}",
    more: str = "",
) -> list[ConfigError]:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(plant=plant, erp=erp, pattern=pattern, more=more))
    return [each for each in examine(load(file)) if each.rule == rule]


def test_a_source_that_asks_for_no_count_of_dropped_messages_is_a_note(tmp_path: Path) -> None:
    (note,) = found(tmp_path, "unseen-drops", plant=MQTT + ', dropped_topic: ""')

    assert (note.severity, note.line, note.column) == ("note", 2, 55)
    assert "messages that its broker drops at a queue limit are in no gap" in note.reason


@pytest.mark.parametrize(
    "endpoints",
    [
        pytest.param({}, id="default"),
        pytest.param({"erp": MQTT + ', dropped_topic: ""'}, id="target"),
        pytest.param({"plant": "kind: memory, dialect: mqtt, broker: a"}, id="no-mqtt"),
    ],
)
def test_a_source_that_asks_and_other_endpoints_are_not(
    tmp_path: Path, endpoints: dict[str, str]
) -> None:
    assert not found(tmp_path, "unseen-drops", **endpoints)
