"""The section `state`: every fault at its place, and a warning for a route that reads the name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import Configuration, load
from gateway.errors import ConfigErrors

CONFIG = """\
endpoints:
  plant: {{kind: mqtt, host: plant, broker_id: p}}
  hub: {{kind: mqtt, host: hub, broker_id: h, allow: ["bridge/#", "line/#"]}}
  bus: {{kind: nats, url: "nats://bus:4222"}}
  idle: {{kind: mqtt, host: idle}}
state:
{state}
routes:
  up: {{from: {{endpoint: plant, pattern: "line/#"}}, to: {{endpoint: hub}}}}
  down: {{from: {{endpoint: hub, pattern: "cmd/#"}}, to: {{endpoint: plant}}}}
{more}
"""


def written(folder: Path, *states: str, more: str = "") -> Path:
    file = folder / "gateway.yaml"
    lines = "\n".join(f"  - {{{each}}}" for each in states)
    file.write_text(CONFIG.format(state=lines, more=more))
    return file


def loaded(folder: Path, *states: str, more: str = "") -> Configuration:
    return load(written(folder, *states, more=more))


FAULTS = [
    ("endpoint: hubb, of: plant, name: bridge/a", "unknown-endpoint", "'hubb'", 16),
    ("endpoint: hub, of: plnt, name: bridge/a", "unknown-endpoint", "'plnt'", 25),
    ("endpoint: hub, of: idle, name: bridge/a", "setting", "no route uses endpoint 'idle'", 25),
    ("endpoint: bus, of: plant, name: bridge.a", "setting", "nats keeps no such state", 16),
    ("endpoint: hub, of: plant, name: bridge/+", "wildcard-in-name", "is a wildcard", 38),
    ("endpoint: hub, of: plant, name: other/a", "not-allowed", "outside of what", 38),
    ("endpoint: plant, of: plant, name: $SYS/broker/a", "reserved", "belong to the broker", 40),
    ("endpoint: [plant, plant], of: plant, name: a", "setting", "tells of another state", 24),
    ("endpoint: plant, of: plant, name: a, payload: xml", "choice", "xml", 52),
    ("endpoint: plant, of: plant", "missing-field", "'name'", 5),
]


@pytest.mark.parametrize(("state", "rule", "reason", "column"), FAULTS)
def test_a_fault_is_told_at_its_place(
    tmp_path: Path, state: str, rule: str, reason: str, column: int
) -> None:
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, state)

    (found,) = [each for each in caught.value.findings if each.severity == "error"]
    assert reason in f"{found.reason} {found.hint}"
    assert (found.line, found.column) == (7, column), found
    assert found.rule == rule


def test_one_state_and_several_are_read(tmp_path: Path) -> None:
    first = "endpoint: [hub, idle], of: plant, name: bridge/a"
    (one,) = loaded(tmp_path, first).state
    assert (one.endpoint, one.of, one.payload) == (("hub", "idle"), "plant", "flag")
    many = loaded(tmp_path, first, "endpoint: plant, of: hub, name: b, payload: json").state
    assert [each.name for each in many] == ["bridge/a", "b"]
    file = tmp_path / "gateway.yaml"
    text = file.read_text()
    file.write_text(text.replace("  - {endpoint: plant", "#").replace("  - {", "  {"))
    assert load(file).state == (one,)


@pytest.mark.parametrize(
    ("name", "more", "found"),
    [
        ("bridge/a", "", []),
        ("line/a", "", []),  # at the hub, where no route reads it
        ("cmd/a", "", ["down"]),
        ("bridge/a", "  r: {from: {endpoint: hub, pattern: '#'}, to: {endpoint: plant}}", ["r"]),
        (
            "bridge/a",
            "  r: {from: {endpoint: hub, pattern: '#', exclude: bridge/a}, to: {endpoint: plant}}",
            [],
        ),
        ("bridge/a", '  p: {from: {endpoint: plant, pattern: "#"}, to: {endpoint: hub}}', []),
    ],
)
def test_a_route_that_reads_the_name_is_a_warning(
    tmp_path: Path, name: str, more: str, found: list[str]
) -> None:
    file = written(tmp_path, f"endpoint: hub, of: plant, name: {name}", more=more)
    file.write_text(file.read_text().replace(', allow: ["bridge/#", "line/#"]', ""))
    warnings = [each for each in examine(load(file)) if each.rule == "state-read"]

    assert [each.reason for each in warnings] == [
        f"route {route!r} reads {name!r}, and carries the state on" for route in found
    ]
    assert all((each.severity, each.line) == ("warning", 7) for each in warnings)
