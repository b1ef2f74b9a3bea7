"""An archive that forgets a date before its spooled copies can be missing: a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

CONFIG = """\
endpoints:
  plant: {{kind: mqtt, host: localhost}}
  erp: {{kind: mqtt, host: erp.example}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{id}}"}}
    to: {{endpoint: erp, template: "orders.{{id}}"}}
{sections}"""
SPOOL = "spool: {path: spool}\n"


def found(folder: Path, sections: str) -> list[str]:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(sections=sections))
    findings = [each for each in examine(load(file)) if each.rule == "short-retention"]
    assert all(each.severity == "warning" for each in findings)
    return [f"{each.line}:{each.column}: {each.reason}; {each.hint}" for each in findings]


def test_days_below_those_of_the_spool_are_a_warning(tmp_path: Path) -> None:
    (text,) = found(tmp_path, SPOOL + "archive: {path: archive, keep_days: 2}\n")

    assert text.startswith("9:")
    assert "`keep_days: 2` ends before the 7 days in which a copy may wait" in text
    assert "set `keep_days: 8` or more, or run gateway reconcile each night" in text


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param("archive: {path: archive, keep_days: 2}\n", id="no-spool"),
        pytest.param(SPOOL + "archive: {path: archive, keep_days: 8}\n", id="enough"),
        pytest.param(SPOOL + "archive: {path: archive}\n", id="all-days"),
        pytest.param(SPOOL, id="no-archive"),
    ],
)
def test_other_archives_are_not(tmp_path: Path, sections: str) -> None:
    assert found(tmp_path, sections) == []


def test_the_last_day_before_is_too_short(tmp_path: Path) -> None:
    assert found(tmp_path, SPOOL + "archive: {path: archive, keep_days: 7}\n")
