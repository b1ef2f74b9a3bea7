"""A warning has two lines on a terminal of 80 columns, with a file and names of usual length."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.cli import main
from gateway.config.load import load

LINES = 160  # characters of two lines
PLACE = len("plant.yaml:10:10: warning: ")
ALONE = """\
gateway: {name: test, instance: gateway-7d4b9c6f5d-x2k8p}
endpoints:
  plant: {kind: mqtt, host: "a,b", cluster: false}
  cloud: {kind: mqtt, host: x-ats.iot.eu-west-1.amazonaws.com, tls: {}}
  orders: {kind: rabbitmq, url: "amqp://h/"}
  erp: {kind: memory, dialect: ems}
  lake: {kind: kafka, servers: ["h:9092"]}
  office: {kind: mqtt, host: o, allow: ["office/#"]}
  other: {kind: mqtt, host: o, client_id: two}
archive: {path: rows, keep_days: 2}
spool: {path: spool}
routes:
  telemetry:
    from: {endpoint: plant, pattern: "$share/g/line/{line}/{rest...}"}
    to:
      - {endpoint: lake, template: "line.{line}.{rest...}"}
      - {endpoint: erp, template: "LINE.{line}.{rest...}"}
      - {endpoint: cloud, template: "line/{line}/{rest...}"}
  retained:
    from: {endpoint: plant, pattern: "state/{rest...}"}
    to: {endpoint: office, template: "office/state/{rest...}", thin: {seconds: 10}}
    retained: ignore
  beside:
    from: {endpoint: plant, pattern: "old/{rest...}"}
    to: {endpoint: other, template: "office/state/{rest...}"}
  fields:
    from: {endpoint: plant, pattern: "f/{rest...}"}
    to:
      endpoint: office
      template: "office/{property.line}/{rest...}"
      thin: {seconds: 10}
  selected:
    from: {endpoint: orders, pattern: "queue:a", selector: "amount > 5"}
    to: {endpoint: office, template: "office/a"}
"""
PAIR = """\
gateway: {name: test, instance: north}
standby: {lease: {kind: file, path: /tmp}}
endpoints:
  plant: {kind: mqtt, host: a}
  erp: {kind: mqtt, host: b}
  office: {kind: mqtt, host: c}
routes:
  telemetry:
    from: {endpoint: plant, pattern: "line/{rest...}"}
    to: [{endpoint: erp, template: "l/{rest...}"}, {endpoint: office, template: "l/{rest...}"}]
"""


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        pytest.param(
            ALONE,
            {
                "past-limit", "changing-instance", "separate-sessions", "kept-share",
                "broker-limits", "memory-target", "short-retention", "lost-retain-flag",
                "thin-shared", "thin-order", "removes-unselected",
            },
            id="alone",
        ),
        pytest.param(PAIR, {"pair-shared-source"}, id="pair"),
    ],
)  # fmt: skip
def test_a_warning_has_two_lines(tmp_path: Path, text: str, rules: set[str]) -> None:
    file = tmp_path / "plant.yaml"
    file.write_text(text)

    found = [each for each in examine(load(file)) if each.severity == "warning"]

    assert rules <= {each.rule for each in found}
    proven = {"collision"}  # it has the names of a counter-example
    texts = [f"{each.reason}; {each.hint}" for each in found if each.rule not in proven]
    assert [each for each in texts if len(each) > LINES - PLACE] == []


def test_a_strict_check_accepts_long_names_with_the_setting_that_it_proposes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plant.yaml"
    route = 'from: {endpoint: plant, pattern: "a/{x}"}, to: {endpoint: erp, template: "b/{x}"'
    ends = "endpoints: {plant: {kind: mqtt, host: h, tls: {}}, erp: {kind: mqtt, host: i, tls: {}"
    text = f"{ends}, limits: {{bytes: 9}}}}}}\nroutes: {{r: {{{route}}}}}}}\n"
    file.write_text(text)
    assert main(["check", "--strict", str(file)]) == 1
    assert "set 'on_too_long: shorten' or 'refuse'" in capsys.readouterr().out

    file.write_text(text.replace('"b/{x}"', '"b/{x}", on_too_long: refuse'))
    assert main(["check", "--strict", str(file)]) == 0
