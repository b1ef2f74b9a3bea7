"""Warnings about sources that remove what the gateway does not deliver then."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

CONFIG = """\
endpoints:
  from: {{{kind}}}
  to: {{kind: memory, dialect: ems}}
routes:
"""
ROUTE = """\
  r{number}:
    from: {{endpoint: from, pattern: "{pattern}"{selector}}}
    to: {{endpoint: to, template: a.b{number}}}
"""
RABBIT = "kind: rabbitmq, url: 'amqp://h/'"
JMS = "kind: jms, classpath: [x.jar], urls: ['tcp://h:1']"
MQTT = "kind: mqtt, host: h"
NATS = "kind: nats, url: 'nats://h', jetstream: false"
SOLACE = "kind: solace, dialect: smf, url: 'tcp://h:1'"
SHARED = JMS + ", shared: '{pattern}'"
NOT_OURS, DIRECT = ", queue: q, subscribe_queue: false", ", guaranteed: false, share: s"
ONE, OTHER, NONE = "x = '1'", "x = '2'", ""
ONE_ENDPOINT, ANOTHER_ROUTE = "an endpoint of its own", "a route without a selector"
CASES = [
    pytest.param(RABBIT, [("queue:a", ONE)], ["r0"], ANOTHER_ROUTE, id="rabbitmq-queue"),
    pytest.param(RABBIT, [("a.#", ONE)], [], "", id="rabbitmq-own-queue"),
    pytest.param(RABBIT, [("queue:a", ONE), ("queue:a", NONE)], [], "", id="the-others-go-on"),
    pytest.param(RABBIT, [("queue:a", ONE), ("queue:b", NONE)], ["r0"], "", id="another-queue"),
    pytest.param(RABBIT, [("queue:a", ONE), ("queue:a", OTHER)], ["r0", "r1"], "", id="two"),
    pytest.param(JMS, [("queue:a", ONE)], [], "", id="the-server-selects"),
    pytest.param(JMS, [("queue:a", ONE), ("queue:b", ONE)], [], "", id="it-selects-for-both"),
    pytest.param(JMS, [("queue:a", ONE), ("queue:a", OTHER)], ["r0", "r1"], ONE_ENDPOINT, id="jms"),
    pytest.param(JMS, [("queue:a", ONE), ("b.>", NONE)], ["r0"], ONE_ENDPOINT, id="and-a-topic"),
    pytest.param(JMS, [("a.>", ONE), ("b.>", OTHER)], [], "", id="jms-topics"),
    pytest.param(SHARED, [("a.>", ONE), ("b.>", NONE)], ["r0"], "", id="shared"),
    pytest.param(MQTT, [("$share/g/a/#", ONE)], ["r0"], ANOTHER_ROUTE, id="mqtt-share"),
    pytest.param(MQTT, [("a/#", ONE)], [], "", id="mqtt"),
    pytest.param(NATS + ", queue_group: g", [("a.>", ONE)], ["r0"], "", id="nats-group"),
    pytest.param(NATS, [("a.>", ONE)], [], "", id="nats-core"),
    pytest.param(SOLACE + NOT_OURS, [("a/>", ONE)], ["r0"], "", id="smf"),
    pytest.param(SOLACE + ", exclusive_queue: false", [("a/>", ONE)], ["r0"], "", id="smf-divided"),
    pytest.param(SOLACE, [("a/>", ONE)], [], "", id="smf-own-queue"),
    pytest.param(SOLACE + DIRECT, [("a/>", ONE)], ["r0"], "", id="smf-share"),
    pytest.param("kind: memory", [("$share/g/a/#", ONE)], [], "", id="memory"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "sources", "warned", "hint"), CASES)
def test_a_selector_that_the_gateway_evaluates_at_a_queue_is_a_warning(
    tmp_path: Path, kind: str, sources: list[tuple[str, str]], warned: list[str], hint: str
) -> None:
    text = CONFIG.format(kind=kind)
    for number, (pattern, selector) in enumerate(sources):
        written = f', selector: "{selector}"' if selector else ""
        text += ROUTE.format(number=number, pattern=pattern, selector=written)
    file = tmp_path / "gateway.yaml"
    file.write_text(text)

    found = [each for each in examine(load(file)) if each.rule == "removes-unselected"]

    assert [each.reason.split("'")[1] for each in found] == warned
    for each in found:
        assert each.severity == "warning"
        assert hint in each.hint
        line = text.splitlines()[each.line - 1]
        assert line[each.column - 1 :].startswith('"x = ')


@pytest.mark.parametrize(
    ("destination", "warned"),
    [pytest.param("queue", ["both"], id="queue"), pytest.param("topic", [], id="topic")],
)
def test_a_queue_of_a_route_in_both_directions_is_a_warning(
    tmp_path: Path, destination: str, warned: list[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        f"endpoints:\n  erp: {{{JMS}, destination: {destination}}}\n  plant: {{{MQTT}}}\n"
        "routes:\n  both:\n    direction: both\n    from: {endpoint: erp, pattern: orders}\n"
        "    to: {endpoint: plant, template: orders}\n"
    )

    found = [each for each in examine(load(file)) if each.rule == "removes-own"]

    assert [each.reason.split("'")[1] for each in found] == warned
    assert all("'both.back' sends there" in each.reason and each.line == 6 for each in found)
