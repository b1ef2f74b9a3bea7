from __future__ import annotations

import pytest

from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.route_checks import find_route_fault, is_covered

FAULTS = [
    pytest.param("a/+/#", "b/{1}/{2...}", "", id="fine"),
    pytest.param("a/#/b", "b", "not last", id="pattern"),
    pytest.param("a/+", "b/{2}", "unknown capture", id="template"),
    pytest.param("a", "b/+", "'+'", id="wildcard-in-template"),
]


@pytest.mark.parametrize(("pattern", "template", "reason"), FAULTS)
def test_a_route_has_the_faults_that_the_loader_finds(
    pattern: str, template: str, reason: str
) -> None:
    fault = find_route_fault(pattern, template, MQTT)

    assert reason in fault
    assert bool(fault) == bool(reason)


COVERED = [
    pytest.param("a/b", ["a/+"], True, id="inside"),
    pytest.param("a/#", ["a", "a/+/#"], True, id="together"),
    pytest.param("a/#", ["a/+/#"], False, id="without-the-parent"),
    pytest.param("a/b", [], False, id="by-nothing"),
]


@pytest.mark.parametrize(("pattern", "others", "expected"), COVERED)
def test_several_patterns_may_cover_one(pattern: str, others: list[str], expected: bool) -> None:
    assert is_covered(pattern, others, MQTT) == expected
