"""One run names every fault of a target: its template, each header rule, and its encoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_load import ENDPOINTS, findings

ROUTE = """\
routes:
  r:
    from: {endpoint: plant, pattern: "a/{x}"}
    to:
      endpoint: ems
      template: "A.{y|uper}.{x|lowr}"
      payload: text
      encoding: utf-9
      headers:
        map: {priority: {low: 12}}
        drop: ["a*b"]
        set: {ttl: soon, line: "{z}", name: "{x|capital}"}
"""


def absent(
    wanted: list[tuple[int, str]], found: list[tuple[int, str]], first: int
) -> list[tuple[int, str]]:
    """Return which of `wanted` no finding has: lines behind the line `first`, and their texts."""
    return [
        (at, text)
        for at, text in wanted
        if not any(line == first + at and text in each for line, each in found)
    ]


def test_all_faults_of_a_target_are_found_in_one_run(tmp_path: Path) -> None:
    found = "\n".join(map(str, findings(tmp_path, ENDPOINTS + ROUTE)))

    wanted = [
        "unknown capture '{y|uper}'", "unknown function 'uper'", "unknown function 'lowr'",
        "unknown encoding", "'a*b'", "unknown capture '{z}'", "unknown function 'capital'",
    ]  # fmt: skip
    assert [each for each in wanted if each not in found] == []
    assert "the value is not an integer from 0 to 9" in found
    assert "the value is not a positive number of seconds" in found


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            '{endpoint: plant, pattern: "a/#/{x}/{rest...}"}',
            "'#' is the rest wildcard and not last",
        ),
        ('{endpoint: plant, pattern: "a/x{x}/{rest...}"}', "{x} does not fill its level"),
        ('{endpoint: plant, pattern: "a/{x}/{rest...}", tags: {mode: list}}', "no tag lists"),
        ('{endpoint: nowhere, pattern: "a/{x}/{rest...}"}', "unknown endpoint 'nowhere'"),
    ],
)
def test_a_source_with_a_fault_hides_none_of_its_targets(
    tmp_path: Path, source: str, reason: str
) -> None:
    route = f"""\
routes:
  r:
    from: {source}
    to:
      - {{endpoint: ems, template: "A.{{x|uper}}.{{rest...|join:-}}"}}
      - {{endpoint: ems, template: "A..{{x}}"}}
      - {{endpoint: ems, template: "A.{{x"}}
      - {{endpoint: ems, template: "A.{{@system|upper}}"}}
      - {{endpoint: ems, template: "A.{{y}}", headers: {{set: {{ttl: soon, line: "{{z}}"}}}}}}
      - {{endpoint: absent, template: A}}
"""
    found = [(each.line, str(each)) for each in findings(tmp_path, ENDPOINTS + route)]
    first = min(line for line, text in found if reason in text)

    wanted = [
        (2, "unknown function 'uper'"), (3, "empty"), (4, "a brace belongs to a capture"),
        (6, "unknown capture '{y}'"), (6, "is not a positive number of seconds"),
        (6, "unknown capture '{z}'"), (7, "unknown endpoint 'absent'"),
    ]  # fmt: skip
    assert absent(wanted, found, first) == []
    assert len(found) == len(wanted) + 1, found


@pytest.mark.parametrize(
    ("pattern", "unknown"),
    [
        pytest.param("line/{line}/#/x", True, id="its-captures-are-known"),
        pytest.param("line/{line/#/x", False, id="a-brace-is-open"),
    ],
)
def test_an_illegal_pattern_hides_no_unknown_capture(
    tmp_path: Path, pattern: str, *, unknown: bool
) -> None:
    route = f"""\
routes:
  r:
    from: {{endpoint: plant, pattern: "{pattern}"}}
    to: {{endpoint: ems, template: "LINE.{{lien}}.{{1}}"}}
"""
    reasons = [each.reason for each in findings(tmp_path, ENDPOINTS + route)]

    assert any("did you mean {line}?" in each for each in reasons) is unknown
    assert len(reasons) == 1 + unknown


TARGET = 'headers: {set: {ttl: soon, line: "{z}"}}, payload: text, encoding: utf-9'


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (f"{{endpoint: absent, template: 'a/{{y}}', {TARGET}}}", "unknown endpoint 'absent'"),
        (f"{{endpoint: ems, topic: a, key: '{{y}}', {TARGET}}}", "`topic` and `key` name a place"),
        (f"{{endpoint: ems, template: ['a.{{y}}', b], {TARGET}}}", "ems has no tag lists"),
    ],
)
def test_a_target_that_cannot_be_hides_no_fault_of_its_settings(
    tmp_path: Path, target: str, reason: str
) -> None:
    route = f"routes: {{r: {{from: {{endpoint: plant, pattern: 'a/{{x}}'}}, to: {target}}}}}\n"
    found = "\n".join(str(each) for each in findings(tmp_path, ENDPOINTS + route))

    wanted = [
        reason, "unknown capture '{y}'", "is not a positive number of seconds",
        "unknown capture '{z}'", "unknown encoding",
    ]  # fmt: skip
    assert [each for each in wanted if each not in found] == []


def test_an_unknown_field_hides_no_fault_of_its_section(tmp_path: Path) -> None:
    endpoints = """\
endpoints:
  plant: {kind: mqtt, prot: 1884, host: "tcp://broker"}
  ems: {kind: memory, dialect: ems}
"""
    found = findings(
        tmp_path, endpoints + "routes: {r: {from: {endpoint: plant, pattern: a}, to: ems}}"
    )

    texts = [str(each).partition("gateway.yaml:")[2] for each in found]
    assert any("unknown field 'prot'; did you mean 'port'?" in each for each in texts)
    assert any("endpoint 'plant': `host`: 'tcp://broker' is no host name" in each for each in texts)


SECTIONS = """\
gateway: {name: "two words", stop_seconds: -1}
standby: {lease: {kind: file, name: x}, seconds: 0}
archive: {path: "ftp://x", keep_days: 0}
dead_letters: {endpoint: nowhere, bytes: 0}
web: {address: 0.0.0.0, key_file: key.pem, port: 99999, token: plain}
tracing: {otlp: "ftp://x", sample: 3}
endpoints:
  plant: {kind: mqtt, host: "tcp://a", qos: 7, dialect: mqqt}
  ems: {kind: memory, dialect: ems, capacity: 0}
routes:
  r:
    from: {endpoint: nowhere, pattern: x}
    to: {endpoint: elsewhere, payload: jsn}
  s:
    from: {endpoint: ems, pattern: "a.{x", selector: "a ="}
    to: {endpoint: ems, template: "b.{x}"}
    retained: nope
"""


def test_a_value_with_a_fault_hides_no_other_of_its_section(tmp_path: Path) -> None:
    found = [(each.line, each.reason) for each in findings(tmp_path, SECTIONS)]

    wanted = [
        (1, "'two words' is not a legal name"), (1, "-1.0 is outside"),
        (2, "a lease of `kind: file` needs a `path`"), (2, "`kind: file` has no 'name'"),
        (2, "0.0 is outside"), (3, "archive: ftp:// is no archive location"), (3, "0 is outside"),
        (4, "unknown endpoint 'nowhere'"), (4, "0 is outside"),
        (5, "'key_file' without `cert_file`"), (5, "99999 is outside"),
        (5, "the file contains a secret"), (6, "the collector's address is not an HTTP URL"),
        (6, "3.0 is outside"), (8, "endpoint 'plant': `host`"), (8, "unknown value '7'"),
        (8, "unknown dialect 'mqqt'"), (9, "0 is outside"), (12, "unknown endpoint 'nowhere'"),
        (13, "unknown endpoint 'elsewhere'"), (13, "unknown value 'jsn'"), (15, "ems: 'a.{x'"),
        (15, "selector: 'a ='"), (17, "unknown value 'nope'"),
    ]  # fmt: skip
    assert [
        (place, reason)
        for place, reason in zip(wanted, found, strict=True)
        if place[0] != reason[0] or not reason[1].startswith(place[1])
    ] == []


def test_a_route_without_one_end_hides_no_fault_of_the_other(tmp_path: Path) -> None:
    routes = """\
routes:
  bare:
    to:
      - {endpoint: ems, template: "A..B"}
      - {endpoint: absent, template: "A.{y|uper}", headers: {set: {ttl: soon}}}
    direction: both
  lost: {from: {endpoint: nowhere, pattern: "a/#/{x}"}}
  endless: {from: {endpoint: plant, pattern: "a/#/{x}"}, direction: both}
  neither: {retained: sometimes}
"""
    found = [(each.line, str(each)) for each in findings(tmp_path, ENDPOINTS + routes)]
    first = min(line for line, text in found if "missing field 'from'" in text)

    wanted = [
        (0, "missing field 'from'"), (2, "empty"), (3, "unknown endpoint 'absent'"),
        (3, "unknown function 'uper'"), (3, "is not a positive number of seconds"),
        (5, "missing field 'to'"), (5, "unknown endpoint 'nowhere'"), (6, "missing field 'to'"),
        (6, "is the rest wildcard and not last"), (7, "missing field 'from'"),
        (7, "missing field 'to'"), (7, "sometimes"),
    ]  # fmt: skip
    assert absent(wanted, found, first) == []
    assert len(found) == len(wanted), found


def test_broken_defaults_hide_no_fault_of_the_values_of_routes(tmp_path: Path) -> None:
    """They may have given what a route lacks, so that nothing is said to be missing."""
    text = """\
defaults: {too: {endpoint: ems}}
routes:
  r:
    from: {endpoint: plant, pattern: "a/{x}", retained: ignore}
    to: {tempalte: "A.{x}", lossy: perhaps}
  s: {from: {endpoint: plant, pattern: "a/{x}"}, retained: sometimes}
"""
    found = [str(each) for each in findings(tmp_path, ENDPOINTS + text)]

    wanted = ["not 'too'", "'retained'", "'tempalte'", "perhaps", "sometimes"]
    assert [each for each in wanted if not any(each in text for text in found)] == []
    assert len(found) == len(wanted), found
