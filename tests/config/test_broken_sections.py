"""A section with a finding causes no further finding in sections that need it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.errors import ConfigErrors

PAIR = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  office: {kind: memory, dialect: mqtt}
"""
UNSET = """\
endpoints:
  plant: {kind: mqtt, host: plant, username: gateway, password: "${env:ABSENT}"}
  office: {kind: memory, dialect: mqtt}
"""
BOTH = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: office, template: "office/{rest...}"}
    direction: both
"""
BACKWARDS = """\
routes:
  orders:
    from: {endpoint: office, pattern: "orders/{rest...}"}
    to: {endpoint: plant, template: "office/{rest...}"}
    direction: both
"""
TWO_SOURCES = """\
routes:
  orders:
    from: [{endpoint: plant, pattern: "a/{rest...}"}, {endpoint: office, pattern: "b/{rest...}"}]
    to: {endpoint: office, template: "office/{rest...}"}
    direction: both
"""

CASES = [
    pytest.param(UNSET + BOTH, ["missing-secret"], id="source-of-both"),
    pytest.param(UNSET + BACKWARDS, ["missing-secret"], id="target-of-both"),
    pytest.param(UNSET + TWO_SOURCES, ["missing-secret", "direction"], id="wrong-by-itself"),
    pytest.param(
        PAIR + BOTH.replace('"office/{rest...}"', '"office/{other...}"'),
        ["unknown-capture"],
        id="template-of-both",
    ),
    pytest.param(
        PAIR + BOTH.replace('"orders/{rest...}"}', '"orders/{rest...}", exclude: ["orders/#/x"]}'),
        ["wildcard-not-last"],
        id="exclude-of-both",
    ),
    pytest.param(
        (PAIR + BOTH).replace("plant", '"-plant"'), ["bad-name"], id="illegal-endpoint-name"
    ),
    pytest.param("endpoints: [plant]\n" + BOTH, ["type"], id="endpoints-not-a-mapping"),
    pytest.param("endpoints:\n" + BOTH, ["type"], id="endpoints-empty"),
    pytest.param(
        PAIR + BOTH + "spool: {path: spool, bytes: many}\ndead_letters: {}\n",
        ["type"],
        id="spool-of-dead-letters",
    ),
    pytest.param(
        PAIR + 'defaults: {to: {endpoint: office, template: "a/{rest...}", on_unmappable: drop}}\n'
        'routes:\n  a: {from: {endpoint: plant, pattern: "a/{rest...}"}, to: {}}\n'
        '  b: {from: {endpoint: plant, pattern: "b/{rest...}"}, to: {}}\n',
        ["choice"],
        id="one-default-of-two-routes",
    ),
    pytest.param(
        PAIR + "defaults: {to: [office]}\n"
        'routes:\n  a: {from: {endpoint: plant, pattern: "a/{rest...}"}, to: {}}\n',
        ["unknown-field"],
        id="defaults-not-a-mapping",
    ),
    pytest.param(
        "endpoints:\n  tags: {kind: yami4, url: 'tcp://tags:1'}\n"
        "  office: {kind: memory, dialect: mqtt}\n"
        "routes:\n  a:\n    from: {endpoint: tags, pattern: 'a.{x}', tags: {mode: combine,"
        " require_tags: ['b.{y']}}\n    to: {endpoint: office, template: 'a/{x}/{y}'}\n",
        ["capture"],
        id="captures-of-required-tags",
    ),
    pytest.param(
        "endpoints:\n  tags: {kind: yami4, url: 'tcp://tags:1'}\n"
        "  office: {kind: memory, dialect: mqtt}\n"
        "routes:\n  a:\n    from: {endpoint: tags, pattern: 'a.{x}', tags: {mode: combine,"
        " require_tag: ['b.{y}']}}\n    to: {endpoint: office, template: 'a/{x}/{y}'}\n",
        ["unknown-field"],
        id="required-tags-with-a-typo",
    ),
    pytest.param(
        PAIR + "routes:\n  a:\n    from: {endpoint: plant, pattern: 'a/{x}', tags: {mode: list}}\n"
        "    to: {endpoint: office, template: 'a/{x}'}\n",
        ["no-tags"],
        id="tags-without-tag-lists",
    ),
]


@pytest.mark.parametrize(("text", "rules"), CASES)
def test_a_broken_section_has_one_finding(tmp_path: Path, text: str, rules: list[str]) -> None:
    assert _rules(tmp_path, text) == rules


@pytest.mark.parametrize("content", [None, "endpoints: {plant\n"], ids=["absent", "not-yaml"])
def test_endpoints_of_an_unreadable_file_are_not_reported_as_unknown(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "endpoints.yaml").write_text(content)

    rules = _rules(tmp_path, "include: endpoints.yaml\n" + BOTH)

    assert rules == ["unreadable" if content is None else "syntax"]


def _rules(folder: Path, text: str) -> list[str]:
    file = folder / "gateway.yaml"
    file.write_text(text)
    with pytest.raises(ConfigErrors) as caught:
        load(file, {})
    return [each.rule for each in caught.value.findings]
