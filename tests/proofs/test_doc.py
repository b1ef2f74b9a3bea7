"""The findings in `docs/proofs.md` are those of the proofs for the mapping above them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypedDict

import pytest
import yaml

from gateway.dialects.registry import DIALECTS
from gateway.proofs import RouteFinding, prove
from gateway.routing.route import Route, Target
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template
from gateway.translate.names import OnUnmappable, Renderer
from tests.proofs.routes import allowing

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"
SYSTEMS = {"plant": "mqtt", "site": "mqtt", "erp": "ems", "feed": "smf", "tags": "yami4"}
SECTIONS = {
    "Two names become one": {"not-injective", "capture-unused"},
    "Names of two routes become one": {"collision", "merged"},
    "A message arrives twice": {"delivered-twice", "copies"},
    "A message arrives by two shares": {"shared-twice"},
    "A message comes back": {"cycle"},
    "A route and its inverse": {"not-inverse"},
    "A route or target without names": {"unreachable", "idle-exclude", "never-sent"},
    "Names too long or too deep": {"past-limit"},
    "Subscriptions that select more": {"widened"},
    "Publishers choose the first level": {"first-place"},
    "Names that an endpoint does not allow": {"outside-allow"},
}
LIMITED = "Names that an endpoint does not allow"
ALLOW = ("ERP.>", "AUDIT.>")
BLOCK = re.compile(r"```yaml\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


class _From(TypedDict, total=False):
    endpoint: str
    pattern: str
    exclude: list[str]


class _To(TypedDict, total=False):
    endpoint: str
    template: str
    on_unmappable: str
    lossy: bool


def samples() -> list[tuple[str, str, str]]:
    """Return section, mapping and findings of every example of the page."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [(title, *found) for title, body in pairs for found in BLOCK.findall(body)]


def parsed_route(name: str, source: _From, targets: list[_To], inverse: str) -> Route:
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
                Renderer(there, OnUnmappable(target.get("on_unmappable", "escape"))),
                () if template is None else (parse_template(template, there, pattern),),
                lossy=target.get("lossy", False),
            )
        )
    excludes = tuple(parse_source(text, dialect) for text in source.get("exclude", []))
    return Route(name, source["endpoint"], dialect, pattern, tuple(made), excludes, inverse=inverse)


def reported(section: str, text: str) -> list[str]:
    """Return the findings of the section's rules, as the check prints them without their places."""
    routes = [
        parsed_route(
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


def line(finding: RouteFinding) -> str:
    severity = "" if finding.severity == "error" else f"{finding.severity}: "
    text = f"{severity}route {finding.route!r}: {finding.text}; {finding.hint}"
    return re.sub(r"(\S{40})\S{20,}", r"\1...", text)


@pytest.mark.parametrize(("section", "mapping", "findings"), samples())
def test_the_page_shows_the_findings_of_the_proofs(
    section: str, mapping: str, findings: str
) -> None:
    shown = reported(section, mapping)

    assert shown
    assert findings.splitlines() == shown


def test_every_section_of_the_page_has_an_example() -> None:
    assert {section for section, *_ in samples()} == set(SECTIONS)


def test_the_table_of_the_page_has_every_rule() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    others = {"possible-loss", "possible-cycle", "unproven", "more", "memory-target", "echo"}

    assert {
        rule for rule in set().union(*SECTIONS.values(), others) if f"`{rule}`" not in table
    } == set()
