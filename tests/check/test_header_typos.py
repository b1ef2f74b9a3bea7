"""A property whose name resembles a field gets a warning, unless it has the prefix."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.check.header_typos import field_meant
from gateway.config.load import load
from gateway.errors import ConfigError

CONFIG = """\
endpoints:
  plant: {{kind: memory, dialect: mqtt}}
  ems: {{kind: memory, dialect: ems}}
routes:
  orders:
    from: [{{endpoint: plant, pattern: "new/{{id}}"}}, {{endpoint: plant, pattern: "old/{{id}}"}}]
    to:
      endpoint: ems
      template: "ORDERS.{{id}}"
      lossy: true
      headers:
        {rules}
"""


def warnings(folder: Path, rules: str) -> list[ConfigError]:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(rules=rules))
    return [each for each in examine(load(file)) if each.rule == "nearly-a-field"]


MISSED = [
    pytest.param("set: {content-type: text/plain}", "content-type", "content_type", id="dash"),
    pytest.param("set: {corelation_id: x}", "corelation_id", "correlation_id", id="slip"),
    pytest.param("rename: {token: replyTo}", "replyTo", "reply_to", id="camel"),
    pytest.param("rename: {replyTo: token}", "replyTo", "reply_to", id="old-name"),
    pytest.param("map: {JMSPriority: {a: 1}}", "JMSPriority", "priority", id="jms"),
    pytest.param("drop: [x-*, Correlation-Data]", "Correlation-Data", "correlation_id", id="mqtt"),
    pytest.param("set: {TTL: 3}", "TTL", "ttl", id="case"),
    pytest.param("set: {retain: false}", "retain", "retained", id="mqtt-flag"),
    pytest.param("set: {Retained: false}", "Retained", "retained", id="capital"),
]


@pytest.mark.parametrize(("rules", "name", "meant"), MISSED)
def test_a_name_that_misses_a_field_is_a_warning_with_what_to_write(
    tmp_path: Path, rules: str, name: str, meant: str
) -> None:
    (found,) = warnings(tmp_path, rules)

    assert (found.severity, found.line) == ("warning", 12)
    assert f"{name!r} under `{rules.partition(':')[0]}` is a property" in found.reason
    assert found.hint == (
        f"did you mean {meant!r}? write 'property.{name}' when the property is meant"
    )


@pytest.mark.parametrize(
    ("name", "field"),
    [("time", "time"), ("JMSTimestamp", "time"), ("redelivered", "redelivered"),
     ("message-id", "source_id"), ("source_id", "source_id")],
)  # fmt: skip
def test_a_name_of_a_field_that_no_rule_changes_is_a_warning(
    tmp_path: Path, name: str, field: str
) -> None:
    (found,) = warnings(tmp_path, f"set: {{{name}: x}}")

    assert found.reason == (
        f"{name!r} under `set` is a property, and not the field {field!r} of a message,"
        " which no rule changes"
    )
    assert found.hint == f"write 'property.{name}' when the property is meant"


MEANT = [
    "set: {content_type: text/plain, correlation_id: x, priority: 3}",
    "set: {property.content-type: text/plain}",
    "rename: {property.replyTo: property.reply-to}",
    "map: {property.JMSPriority: {a: 1}}",
    "drop: [property.Correlation-Data, content*]",
    "set: {x-priority: 3, desk: a, order-type: b, node: c, priority2: d, type: e}",
    "set: {retained: true}",
    "drop: [retained]",
]


@pytest.mark.parametrize("rules", MEANT)
def test_a_field_or_a_prefixed_property_has_no_warning(tmp_path: Path, rules: str) -> None:
    assert warnings(tmp_path, rules) == []


@pytest.mark.parametrize("name", ["", "-", "é", "x" * 10_000, "\0"])
def test_any_name_is_accepted(name: str) -> None:
    assert field_meant(name) == ""
