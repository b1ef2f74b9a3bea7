"""The pages for those who run it say what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gateway.cli import MODULES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = ["deployment", "security", "runbook", "capacity", "upgrade", "operations"]
RUNBOOK = (DOCS / "runbook.md").read_text()
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def alerts() -> list[str]:
    groups = yaml.safe_load((ROOT / "deploy" / "prometheus-alerts.yaml").read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("alert", alerts())
def test_every_alert_is_in_the_runbook_and_leads_to_its_heading(alert: str) -> None:
    assert f"| [{alert}](operations.md#{alert.lower()}) |" in RUNBOOK
    assert alert.lower() in anchors(DOCS / "operations.md")


def test_the_runbook_has_no_alert_that_is_not() -> None:
    assert set(re.findall(r"^\| \[(Gateway\w+)\]", RUNBOOK, re.MULTILINE)) == set(alerts())


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target, anchor in LINK.findall((DOCS / f"{page}.md").read_text()):
        path = DOCS / target if target else DOCS / f"{page}.md"
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), (target, anchor)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    named = re.findall(r"deploy/[\w./*-]*\w", (DOCS / f"{page}.md").read_text())

    assert [each for each in named if not any(ROOT.glob(each))] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_named_exist(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text()
    commands = set(re.findall(r"(?:^|`|&& )gateway ([a-z-]+)", text, re.MULTILINE))

    assert commands <= {command for module in MODULES.values() for command in module}
