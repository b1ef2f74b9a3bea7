"""The advice for findings: every rule of the code has one."""

from __future__ import annotations

import re
from pathlib import Path

import gateway
from gateway.night.reconcile.report.advice import FINDING_ADVICE, advice_for

SOURCES = Path(str(gateway.__file__)).parent
OTHER_COMMANDS = {  # rules of findings that no page has
    "vanished-file", "bad-line", "torn-line", "contrary-name", "unknown-name", "late-segment",
}  # fmt: skip


def rules() -> set[str]:
    """Every rule that the archive's and the reconciliation's modules give to a finding."""
    return {
        rule
        for package in ("archive", "reconcile")
        for path in (SOURCES / package).rglob("*.py")
        if "maintenance" not in path.parts and "compaction" not in path.parts
        for rule in re.findall(r'\b(?:error|warning)\(\s*"([a-z-]+)"', path.read_text())
    }


def test_every_rule_has_a_meaning_and_an_advice() -> None:
    assert rules() - set(FINDING_ADVICE) - OTHER_COMMANDS == set()
    assert all(each.meaning and each.advice for each in FINDING_ADVICE.values())


def test_an_unknown_rule_has_no_advice() -> None:
    assert advice_for("of-a-later-version").advice == ""
