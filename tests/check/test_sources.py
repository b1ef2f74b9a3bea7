"""Doubts about the sources of routes: drops, dead members of a share, and ids of copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load
from gateway.errors import ConfigError

CONFIG = """\
endpoints:
  plant: {{{plant}}}
  erp: {{{erp}}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "{pattern}"}}
    to: {{endpoint: erp, template: "erp/{{rest...}}"{more}}}
"""
MQTT = "kind: mqtt, host: localhost"
JMS = "kind: jms, dialect: smf, factory: x, urls: [y]"
SOLACE = "kind: solace, dialect: mqtt, url: 'tcp://b:1'"


def found(  # the parts of one configuration
    folder: Path,
    rule: str,
    *,
    plant: str = MQTT,
    erp: str = "kind: mqtt, host: erp.example",
    pattern: str = "orders/{rest...}",
    more: str = "",
) -> list[ConfigError]:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(plant=plant, erp=erp, pattern=pattern, more=more))
    return [each for each in examine(load(file)) if each.rule == rule]


def test_a_source_that_asks_for_no_count_of_dropped_messages_is_a_note(tmp_path: Path) -> None:
    (note,) = found(tmp_path, "unseen-drops", plant=MQTT + ', dropped_topic: ""')

    assert (note.severity, note.line, note.column) == ("note", 2, 55)
    assert "messages that its broker drops at a queue limit are in no gap" in note.reason


@pytest.mark.parametrize(
    "endpoints",
    [
        pytest.param({}, id="default"),
        pytest.param({"erp": MQTT + ', dropped_topic: ""'}, id="target"),
        pytest.param({"plant": "kind: memory, dialect: mqtt, broker: a"}, id="no-mqtt"),
    ],
)
def test_a_source_that_asks_and_other_endpoints_are_not(
    tmp_path: Path, endpoints: dict[str, str]
) -> None:
    assert not found(tmp_path, "unseen-drops", **endpoints)


SHARE = "$share/plant/orders/{rest...}"


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_share_whose_sessions_are_kept_is_a_warning(tmp_path: Path, version: str) -> None:
    plant = f'{MQTT}, version: "{version}"'
    (warning,) = found(tmp_path, "kept-share", plant=plant, pattern=SHARE)

    assert (warning.severity, warning.line) == ("warning", 6)
    assert "messages wait for a dead gateway of the share" in warning.reason
    assert "start it again with its client id" in warning.hint


@pytest.mark.parametrize(
    ("plant", "pattern"),
    [
        pytest.param(f"{MQTT}, session_expiry: 0", SHARE, id="clean-session"),
        pytest.param(f"{MQTT}, qos: 0", SHARE, id="at-most-once"),
        pytest.param(MQTT, "orders/{rest...}", id="no-share"),
    ],
)
def test_other_subscriptions_are_not(tmp_path: Path, plant: str, pattern: str) -> None:
    assert not found(tmp_path, "kept-share", plant=plant, pattern=pattern)


TWO = "kind: mqtt, host: 'a.example, b.example:1884'"


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_sessions_at_several_brokers_are_a_warning(tmp_path: Path, version: str) -> None:
    (warning,) = found(tmp_path, "separate-sessions", plant=f'{TWO}, version: "{version}"')

    assert (warning.severity, warning.line, warning.column) == ("warning", 2, 29)
    assert "each address keeps its own session" in warning.reason
    assert "`cluster: true`" in warning.hint


@pytest.mark.parametrize(
    "endpoints",
    [
        pytest.param({"plant": f"{TWO}, cluster: true"}, id="cluster"),
        pytest.param({"plant": f"{TWO}, session_expiry: 0"}, id="clean-session"),
        pytest.param({"plant": f"{TWO}, qos: 0"}, id="at-most-once"),
        pytest.param({"erp": TWO}, id="target"),
        pytest.param({}, id="one-address"),
    ],
)
def test_other_addresses_are_not(tmp_path: Path, endpoints: dict[str, str]) -> None:
    assert not found(tmp_path, "separate-sessions", **endpoints)


WITH_ID = ", add_message_id: true"
SOURCES = {
    "mqtt": MQTT,
    "mqtt-3.1.1": MQTT + ', version: "3.1.1"',
    "memory": "kind: memory, dialect: mqtt, broker: a",
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_gateway_id_that_a_crash_changes_is_a_note(tmp_path: Path, source: str) -> None:
    (note,) = found(tmp_path, "new-copy-id", plant=SOURCES[source], more=WITH_ID)

    assert (note.severity, note.line) == ("note", 7)
    assert note.reason.startswith("route 'orders': messages at 'plant' have no identity")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"more": ""}, id="no-id"),
        pytest.param({"plant": f"{MQTT}, qos: 0"}, id="not-delivered-again"),
        pytest.param({"plant": JMS}, id="identity-of-jms"),
        pytest.param({"plant": SOLACE}, id="identity-of-solace"),
    ],
)
def test_copies_with_one_id_are_not(tmp_path: Path, parts: dict[str, str]) -> None:
    assert not found(tmp_path, "new-copy-id", **{"more": WITH_ID, **parts})


@pytest.mark.parametrize(("version", "lines"), [("5", [8]), ("3.1.1", [])])
def test_a_route_that_ignores_retained_messages_takes_the_flag_from_others(
    tmp_path: Path, version: str, lines: list[int]
) -> None:
    plant = f"{MQTT}, version: '{version}'"
    ignoring = "  news: {from: {endpoint: plant, pattern: n}, to: {endpoint: erp}, retained: ignore"
    warnings = found(tmp_path, "lost-retain-flag", plant=plant, more="}\n" + ignoring)

    assert [each.line for each in warnings] == lines
    assert not found(tmp_path, "lost-retain-flag", plant=plant)
    other = JMS  # which has no such flag
    assert not found(tmp_path, "lost-retain-flag", plant=plant, erp=other, more="}\n" + ignoring)
