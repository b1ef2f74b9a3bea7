"""Selectors that are true for no message of their source."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

CONFIG = """\
endpoints:
  plant: {{{kind}}}
  other: {{kind: memory, dialect: ems}}
  reader: {{kind: memory, dialect: ems}}
routes:
  big:
    from: {{endpoint: plant, pattern: {pattern}, selector: "{selector}"}}
    to: {{endpoint: other, template: a.b}}
"""
FIVE, THREE = ("kind: mqtt, host: 127.0.0.1", "kind: mqtt, host: 127.0.0.1, version: '3.1.1'")
SOLACE = "kind: solace, url: 'tcp://127.0.0.1', vpn: v"
YAMI4 = "kind: yami4, url: 'tcp://127.0.0.1:1'"
IMPOSSIBLE, DOUBTFUL = ("error", "impossible-selector"), ("warning", "doubtful-selector")
FINDINGS = [
    (FIVE, "amount > 100", DOUBTFUL, ("true only for messages of 'plant' that another gateway sent"
     ": at character 1, where 'amount' is a text, if present")),
    (FIVE, "amount = '100'", None, ""),
    (FIVE, "a = 'b' OR amount > 100", DOUBTFUL, ("a part of its selector is not true for a message"
     " of 'plant': at character 12, where 'amount' is a text, if present")),
    (FIVE, "NOT amount > 100", DOUBTFUL, ("under NOT, a part of its selector leaves out no message"
     " of 'plant' that has it: at character 5, where 'amount' is a text, if present")),
    (FIVE, "NOT (NOT (amount > 100))", DOUBTFUL, "true only for messages of 'plant' that another"),
    (FIVE, "NOT (amount = '5' OR JMSPriority > 9)", DOUBTFUL, "leaves out no message"),
    (FIVE, "amount NOT IN ('5') AND size IS NOT NULL", None, ""),
    (FIVE, "NOT (JMSPriority = 3)", None, ""),
    (FIVE, "amount > 100 AND JMSPriority > 9", IMPOSSIBLE, "of 'plant': at character 18, where"),
    (FIVE, "amount IS NOT NULL AND JMSPriority > 4", None, ""),
    (FIVE, "JMSPriority > 9", IMPOSSIBLE, "'JMSPriority' is one of 0, 1, 2,"),
    (FIVE, "JMSDeliveryMode = 'PERSISTANT'", IMPOSSIBLE, "one of PERSISTENT, NON_PERSISTENT"),
    (THREE, "amount = '100'", IMPOSSIBLE, ("true for no message of 'plant': at character 1, where"
     " 'amount' is always absent")),
    (THREE, "JMSPriority > 4", IMPOSSIBLE, "'JMSPriority' is always 4"),
    (THREE, "JMSPriority BETWEEN 5 AND 9", IMPOSSIBLE, "at character 1, where 'JMSPriority' is"),
    (THREE, "amount BETWEEN 5 AND 9", IMPOSSIBLE, "at character 1, where 'amount' is always"),
    (THREE, "JMSTimestamp > 0", IMPOSSIBLE, "'JMSTimestamp' is always absent"),
    (THREE, "amount IS NULL", None, ""),
    (THREE, "amount IS NOT NULL", IMPOSSIBLE, "'amount' is always absent"),
    (THREE, "NOT (JMSPriority >= 0)", IMPOSSIBLE, "'JMSPriority' is always 4"),
    (THREE, "JMSDeliveryMode NOT IN ('PERSISTENT', 'NON_PERSISTENT')", IMPOSSIBLE,
     "'JMSDeliveryMode' is one of PERSISTENT, NON_PERSISTENT"),
    (THREE, "NOT (amount = '5')", IMPOSSIBLE, "'amount' is always absent"),
    (THREE, "amount IS NOT NULL OR JMSDeliveryMode = 'PERSISTENT'", DOUBTFUL, "a part of its"),
    (THREE, "JMSDeliveryMode = 'PERSISTENT'", None, ""),
    (SOLACE, "amount > 100", None, ""),
    (YAMI4, "amount > 100", None, ""),
    ("kind: memory, dialect: mqtt", "amount > 100", None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "selector", "finding", "text"), FINDINGS)
def test_a_selector_fits_the_types_of_its_source(
    tmp_path: Path, kind: str, selector: str, finding: tuple[str, str] | None, text: str
) -> None:
    file = tmp_path / "gateway.yaml"
    pattern = "a.b" if kind == YAMI4 else "a/b"
    file.write_text(CONFIG.format(kind=kind, pattern=pattern, selector=selector))

    found = [each for each in examine(load(file)) if each.rule.endswith("-selector")]

    assert [(each.severity, each.rule) for each in found] == ([finding] if finding else [])
    for each in found:
        assert text in each.reason
        assert each.reason.count("at character 1,") < 2
        assert each.hint
        assert (each.line, file.read_text().splitlines()[6][each.column - 1]) == (7, '"')
