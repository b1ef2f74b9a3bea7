"""The note about echoes that only name and payload tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

CONFIG = """\
endpoints:
  near: {{kind: mqtt, host: a.example}}
  far: {{{far}}}
routes:
  r: {{from: {{endpoint: near, pattern: a}}, to: {{endpoint: far, template: a}}, direction: both}}
"""
HINTS = {
    "kind: mqtt, version: 3.1.1": "use MQTT 5 there when other bridges join the same brokers",
    "kind: memory, dialect: mqtt, headers: false": "set `headers: true` there",
}


@pytest.mark.parametrize("far", HINTS)
def test_the_hint_has_a_setting_of_the_endpoint(tmp_path: Path, far: str) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.format(far=far))

    (note,) = [each for each in examine(load(file)) if each.rule == "echo"]

    assert note.hint == HINTS[far]
