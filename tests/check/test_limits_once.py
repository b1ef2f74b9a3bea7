"""Targets of a route that differ in a prefix have one finding about too long names."""

from __future__ import annotations

from pathlib import Path

from gateway.check.examine import examine
from gateway.config.load import load

CONFIG = """\
gateway: {name: g}
endpoints:
  plant: {kind: mqtt}
  erp: {kind: memory, dialect: ems, broker: e}
routes:
  r:
    from:
      - {endpoint: plant, pattern: "a/{rest...}"}
      - {endpoint: plant, pattern: "long/{rest...}"}
    to:
      - {endpoint: erp, template: "A.{rest...}"}
      - {endpoint: erp, template: "LONGER.{rest...}"}
      - {endpoint: erp, template: "MEANT.{rest...}", on_too_long: refuse}
  s:
    from: {endpoint: plant, pattern: "s/{rest...}"}
    to: {endpoint: erp, template: "S.{rest...}"}
"""


def test_a_route_has_one_finding_about_long_names_and_one_note(tmp_path: Path) -> None:
    file = tmp_path / "g.yaml"
    file.write_text(CONFIG)

    found = [each for each in examine(load(file)) if each.rule == "past-limit"]

    assert [(each.severity, each.line) for each in found] == [
        ("warning", 11), ("note", 13), ("warning", 16),
    ]  # fmt: skip
    assert [each.reason.rpartition("; ")[2] for each in found[:2]] == [
        "3 more alike", "1 more alike",
    ]  # fmt: skip
    assert "alike" not in found[2].reason
