"""A memory endpoint that no route takes from discards its messages: a warning."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.cli import main
from gateway.cli.live.run import log_warnings
from gateway.config.load import load

CONFIG = """\
endpoints:
  plant: {{kind: mqtt, host: localhost}}
  erp: {{kind: memory, dialect: ems, broker: one}}
  audit: {{kind: memory, dialect: ems, broker: {broker}}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{id}}"}}
    to: {{endpoint: erp, template: "ORDERS.{{id}}", on_too_long: refuse}}
  onward:
    from: {{endpoint: {source}}}
    to: {{endpoint: plant, template: onward}}
"""
LOST = "endpoint 'erp': messages of route 'orders' count as delivered and are lost at the end"


def written(folder: Path, source: str, broker: str = "two") -> Path:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(source=source, broker=broker))
    return file


def test_a_memory_target_that_no_route_takes_from_is_a_warning(tmp_path: Path) -> None:
    file = written(tmp_path, "audit, pattern: x")
    (found,) = [each for each in examine(load(file)) if each.rule == "memory-target"]

    assert (found.severity, found.line, found.column) == ("warning", 3, 15)
    assert found.reason == LOST
    assert found.hint == "send elsewhere, or add a route from here"
    assert main(["check", str(file)]) == 0
    assert main(["check", str(file), "--strict"]) == 1


@pytest.mark.parametrize(
    ("source", "broker"),
    [
        pytest.param("erp, pattern: x", "two", id="the-endpoint"),
        pytest.param("audit, pattern: x", "one", id="an-endpoint-of-its-broker"),
    ],
)
def test_a_memory_target_with_a_route_from_its_broker_has_no_finding(
    tmp_path: Path, source: str, broker: str
) -> None:
    found = examine(load(written(tmp_path, source, broker)))

    assert "memory-target" not in {each.rule for each in found}


def test_dead_letters_in_memory_are_a_warning(tmp_path: Path) -> None:
    file = written(tmp_path, "erp, pattern: x")
    dead_letters = "dead_letters: {endpoint: audit, name: dead}\n"
    file.write_text(f"{file.read_text()}spool: {{path: {tmp_path}}}\n{dead_letters}")
    (found,) = [each for each in examine(load(file)) if each.rule == "memory-target"]

    assert found.line == 4
    assert "endpoint 'audit': the dead letters count as delivered" in found.reason


def test_the_warning_is_logged_when_the_gateway_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = load(written(tmp_path, "audit, pattern: x"))
    with caplog.at_level(logging.WARNING):
        log_warnings(configuration)

    assert LOST in caplog.text
