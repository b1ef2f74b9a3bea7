"""The facts by which routes of other gateways meet a source or a target at its broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.routing.route import BrokerAccess, Route

_CONFIG = """\
endpoints:
  in: {0}
  out: {1}
routes:
  r: {{from: {{endpoint: in, pattern: "{2}"{3}}}, to: {{endpoint: out, add_message_id: true}}}}
"""
OUT = "{kind: mqtt, host: out.example}"


def route(
    tmp_path: Path, source: str, target: str = OUT, pattern: str = "a/b", more: str = ""
) -> Route:
    file = tmp_path / "gateway.yaml"
    file.write_text(_CONFIG.format(source, target, pattern, more))
    (found,) = load(file).routes
    return found


def jms(text: str = "") -> str:
    return f'{{kind: jms, urls: ["tcp://ems.example:7222"], dialect: ems{text}}}'


@pytest.mark.parametrize(
    "endpoint",
    [
        "{kind: mqtt, host: localhost}",
        '{kind: mqtt, host: "127.0.0.1"}',
        '{kind: mqtt, host: "::1"}',
        "{kind: memory, dialect: mqtt}",
        '{kind: jms, urls: ["failover:(tcp://far:1,tcp://localhost:2)"], dialect: ems}',
    ],
)
def test_a_broker_that_only_its_own_machine_knows_needs_an_id(
    tmp_path: Path, endpoint: str
) -> None:
    named = endpoint.replace("}", ", broker_id: bus}")

    assert not route(tmp_path, endpoint).access.broker
    found = route(tmp_path, named).access
    assert found.broker
    assert found.name == "bus"


def test_endpoints_of_one_broker_meet_where_they_spell_names_alike(tmp_path: Path) -> None:
    def broker(endpoint: str) -> str:
        return route(tmp_path, endpoint, pattern="a").access.broker

    assert broker("{kind: mqtt, host: out.example, username: u}") == (
        route(tmp_path, "{kind: mqtt, host: x}").targets[0].access.broker
    )
    assert broker("{kind: mqtt, host: out.example, port: 8884}") != broker(OUT)
    assert broker(jms(", destination: queue")) != broker(jms())
    assert broker(jms(", broker_id: b")) != broker("{kind: mqtt, host: x, broker_id: b}")


def test_both_sides_say_whether_messages_carry_their_ids(tmp_path: Path) -> None:
    plain = OUT.replace("}", ', version: "3.1.1"}')

    assert route(tmp_path, OUT, OUT).targets[0].access.ids
    assert not route(tmp_path, OUT, plain).targets[0].access.ids
    assert route(tmp_path, OUT).access.ids
    assert not route(tmp_path, plain).access.ids


@pytest.mark.parametrize(
    ("endpoint", "pattern", "group"),
    [
        pytest.param(OUT, "$share/g/a/b", "$share/g/", id="mqtt-share"),
        pytest.param(OUT, "a/b", "", id="mqtt"),
        pytest.param(jms(), "queue:A", "A", id="queue"),
        pytest.param(jms(", destination: queue"), "A", "A", id="queue-by-default"),
        pytest.param(jms(", destination: queue"), "topic:A", "", id="topic"),
        pytest.param(jms(', shared: "s-{pattern}"'), "A", "s-A", id="shared"),
    ],
)
def test_readers_of_a_group_divide_the_messages(
    tmp_path: Path, endpoint: str, pattern: str, group: str
) -> None:
    target = '{endpoint: out, template: "t"}'
    file = tmp_path / "gateway.yaml"
    file.write_text(
        _CONFIG.format(endpoint, OUT, pattern, "").replace(
            "{endpoint: out, add_message_id: true}", target.replace("}", ", lossy: true}")
        )
    )
    (found,) = load(file).routes

    assert found.access.group == group


def test_a_source_that_leaves_out_messages_says_so(tmp_path: Path) -> None:
    assert route(tmp_path, OUT, more=", selector: \"a = 'b'\"").access.filtered
    assert route(tmp_path, jms(", selector: \"a = 'b'\""), pattern="A").access.filtered
    assert route(tmp_path, OUT).access == BrokerAccess(
        route(tmp_path, OUT).access.broker, "", ids=True
    )


def test_a_reverse_route_has_the_access_of_its_own_ends(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    text = _CONFIG.format("{kind: mqtt, host: in.example}", OUT, "a/{x}", "")
    file.write_text(text.replace("add_message_id: true}}", 'template: "b/{x}"}, direction: both}'))
    forward, back = load(file).routes

    assert forward.access.broker == back.targets[0].access.broker != ""
    assert forward.targets[0].access.broker == back.access.broker != ""
