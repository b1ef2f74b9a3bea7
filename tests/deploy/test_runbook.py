"""Every alert has its heading in the operations page and its row in the runbook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.printed_commands import Command, is_complete
from tests.test_docs import anchors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUNBOOK = (DOCS / "runbook.md").read_text()


def alerts() -> list[str]:
    groups = yaml.safe_load((ROOT / "deploy" / "prometheus-alerts.yaml").read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("alert", alerts())
def test_every_alert_is_in_the_runbook_and_leads_to_its_heading(alert: str) -> None:
    assert f"| [{alert}](operations.md#{alert.lower()}) |" in RUNBOOK
    assert alert.lower() in anchors(DOCS / "operations.md")


def test_the_runbook_has_no_alert_that_is_not() -> None:
    assert set(re.findall(r"^\| \[(Gateway\w+)\]", RUNBOOK, re.MULTILINE)) == set(alerts())


def alert_commands() -> set[str]:
    text = yaml.safe_load((ROOT / "deploy" / "prometheus-alerts.yaml").read_text())["groups"]
    return set(re.findall(r"`(gateway [^`]+)`", yaml.dump(text, width=10_000)))


@pytest.mark.parametrize("command", sorted(alert_commands()))
def test_a_command_of_an_alert_has_its_arguments(command: str) -> None:
    assert is_complete(Command("prometheus-alerts.yaml", "", command))
