"""`docs/proofs.md` says what the code says: every mapping in it, and the findings below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypedDict

import pytest
import yaml

from gateway.dialects.registry import DIALECTS
from gateway.proofs import Finding, prove
from gateway.routing.captures import parse_source
from gateway.routing.route import Route, Target
from gateway.routing.template import parse_template
from gateway.translate.names import Escape, Renderer
from tests.proofs.routes import allowing

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"
SYSTEMS = {"plant": "mqtt", "site": "mqtt", "erp": "ems", "feed": "smf", "tags": "yami4"}
SECTIONS = {
    "Two names become one": {"not-injective", "capture-unused"},
    "Names of two routes become one": {"collision", "merged"},
    "A message arrives twice": {"delivered-twice", "copies"},
    "A message comes by two shares": {"shared-twice"},
    "A message comes back": {"cycle"},
    "A route and its way back": {"not-inverse"},
    "A route that nothing reaches": {"unreachable", "idle-exclude", "never-sent"},
    "Names too long or too deep": {"past-limit"},
    "What comes in vain": {"widened"},
    "How made names begin": {"first-place"},
    "Outside of what an endpoint allows": {"outside-allow"},
}
LIMITED = "Outside of what an endpoint allows"
ALLOW = ("ERP.>", "AUDIT.>")
BLOCK = re.compile(r"```yaml\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


class _From(TypedDict, total=False):
    endpoint: str
    pattern: str
    exclude: list[str]


class _To(TypedDict, total=False):
    endpoint: str
    template: str
    escape: str
    lossy: bool


def samples() -> list[tuple[str, str, str]]:
    """Section, mapping and findings of every example of the page."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [(title, *found) for title, body in pairs for found in BLOCK.findall(body)]


def mapped(name: str, source: _From, targets: list[_To], inverse: str) -> Route:
    dialect = DIALECTS[SYSTEMS[source["endpoint"]]]
    pattern = parse_source(source["pattern"], dialect)
    made: list[Target] = []
    for target in targets:
        there = DIALECTS[SYSTEMS[target["endpoint"]]]
        template = target.get("template")
        made.append(
            Target(
                f"{target['endpoint']}:{len(made) + 1}",
                target["endpoint"],
                Renderer(there, Escape(target.get("escape", "escape"))),
                None if template is None else parse_template(template, there, pattern),
                lossy=target.get("lossy", False),
            )
        )
    excludes = tuple(parse_source(text, dialect) for text in source.get("exclude", []))
    return Route(name, source["endpoint"], dialect, pattern, tuple(made), excludes, inverse=inverse)


def said(section: str, text: str) -> list[str]:
    """The findings of the section's rules, as `gateway check` shows them."""
    routes = [
        mapped(
            name,
            route["from"],
            route["to"] if isinstance(route["to"], list) else [route["to"]],
            route.get("inverse", ""),
        )
        for name, route in yaml.safe_load(text).items()
    ]
    if section == LIMITED:
        routes = [allowing(route, ALLOW) for route in routes]
    found = prove(routes, {name: name for name in SYSTEMS})
    return [line(each) for each in found if each.rule in SECTIONS[section]]


def line(finding: Finding) -> str:
    text = f"{finding.route}: {finding.severity}: {finding.rule}: {finding.text}; {finding.hint}"
    return re.sub(r"(\S{40})\S{20,}", r"\1...", text)


@pytest.mark.parametrize(("section", "mapping", "findings"), samples())
def test_the_page_shows_what_the_proofs_say(section: str, mapping: str, findings: str) -> None:
    shown = said(section, mapping)

    assert shown
    assert findings.splitlines() == shown


def test_every_section_of_the_page_has_an_example() -> None:
    assert {section for section, *_ in samples()} == set(SECTIONS)
