"""One run names every fault of a target: its template, each header rule, and its encoding."""

from __future__ import annotations

from pathlib import Path

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


def test_all_faults_of_a_target_are_found_in_one_run(tmp_path: Path) -> None:
    found = "\n".join(map(str, findings(tmp_path, ENDPOINTS + ROUTE)))

    wanted = [
        "unknown capture '{y|uper}'", "unknown function 'uper'", "unknown function 'lowr'",
        "unknown encoding", "'a*b'", "unknown capture '{z}'", "unknown function 'capital'",
    ]  # fmt: skip
    assert [each for each in wanted if each not in found] == []
    assert "the value is not an integer from 0 to 9" in found
    assert "the value is not a positive number of seconds" in found


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
