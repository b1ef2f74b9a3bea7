"""The gateway carries or refuses the messages that ActiveMQ's MQTT translation loses or alters.

The same ActiveMQ carries the messages, and mosquitto is the MQTT side.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.config.load import load
from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message, Value
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.mosquitto import Mosquitto
from tests.endpoints.exchange import QUIET, collect, opened, send
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

CONFIG = """\
endpoints:
  plant: {{kind: mqtt, host: 127.0.0.1, port: {port}}}
  core: {{kind: jms, dialect: ems, classpath: [{jars}], factory: {factory}, urls: ["{url}"]}}
routes:
  there: {{from: {{endpoint: plant, pattern: "in/{{rest...}}"}},
          to: {{endpoint: core, template: "{root}.{{rest...}}"}}}}
  back: {{from: {{endpoint: core, pattern: "{root}.{{rest...}}"}},
         to: {{endpoint: plant, template: "out/{{rest...}}", payload: json}}}}
  dollars: {{from: {{endpoint: plant, pattern: "$odd/{{rest...}}"}}, to: {{endpoint: core}}}}
  dollars-back: {{from: {{endpoint: core, pattern: "%24odd.{{rest...}}"}},
                 to: {{endpoint: plant, template: "out/{{rest...}}"}}}}
archive: {{path: {archive}}}
"""
ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
LONG = "x" * 33_003

NAMES = {  # of MQTT: the rule that refuses it, or None
    "plain": None,
    "a b": None,
    "a//b": None,
    "a/": None,
    "a.b/c": None,
    "*/>": None,
    "größe/🜚": None,
    "%2E/$x": None,
    "a/$SYS/b": None,
    "a ": "name-altered",  # the broker trims it, to `a`
    "a,b/c": "name-altered",  # it would be sent to `a` and to `b.c`
    "a/b?c=1": "name-altered",  # it would become `a.b`
    LONG: "too-long",  # every receiver would lose its connection
}


@contextmanager
def bridged(
    folder: Path, mosquitto: Mosquitto, broker: ActiveMq
) -> Iterator[tuple[Gateway, str, Sink, Source]]:
    """Run the gateway, and yield a sending and a receiving MQTT client with the JMS root."""
    root, file = f"T{uuid4().hex[:8]}", folder / "gateway.yaml"
    file.write_text(
        CONFIG.format(
            port=mosquitto.port,
            jars=", ".join(client_jars()),
            factory=FACTORY,
            url=broker.url,
            root=root,
            archive=folder / "archive",
        )
    )
    settings = MqttSettings(host="127.0.0.1", port=mosquitto.port, client_id=root)
    into, out = make_sink(settings, instance="in"), make_source(settings, [Subscription("out/#")])
    gateway = Gateway(load(file))
    gateway.start()
    try:
        up = "connected"
        until(lambda: all(s.connection.value == up for s in gateway.states), "connections")
        with opened(into, out):
            yield gateway, root, into, out
    finally:
        assert gateway.stop(PATIENCE)


@contextmanager
def jms(broker: ActiveMq, *patterns: str) -> Iterator[tuple[Source, Sink]]:
    settings = broker.settings()
    source, sink = make_source(settings, [Subscription(p) for p in patterns]), make_sink(settings)
    with opened(source, sink):
        yield source, sink


@pytest.fixture
def broker(activemq: ActiveMq) -> ActiveMq:
    return activemq


def test_a_name_crosses_both_ways_or_only_its_message_is_dead_lettered(
    tmp_path: Path, mosquitto: Mosquitto, broker: ActiveMq
) -> None:
    crossing = [name for name, rule in NAMES.items() if rule is None]
    with bridged(tmp_path, mosquitto, broker) as (gateway, root, into, out):
        with jms(broker, f"{root}.>") as (bystander, _):
            send(into, *(Message(f"in/{name}", b'"x"', ONCE) for name in NAMES))
            seen = collect(bystander, len(crossing))
        came = collect(out, len(crossing))

        assert out.receive(QUIET) is None  # under no other name

    assert [message.address for message in came] == [f"out/{name}" for name in crossing]
    assert len(seen) == len(crossing)  # the connection is still open
    rules = Counter(rule for rule in NAMES.values() if rule is not None)
    assert gateway.counters["there"].rules == dict(rules)


def test_a_name_with_a_dollar_first_crosses(
    tmp_path: Path, mosquitto: Mosquitto, broker: ActiveMq
) -> None:
    """Without the gateway, ActiveMQ acknowledges such a message and drops it."""
    with bridged(tmp_path, mosquitto, broker) as (_, _, into, out):
        send(into, Message("$odd/a", b"x", ONCE))
        (got,) = collect(out, 1)

    assert got.address == "out/a"


def test_names_reserved_by_the_broker_are_refused(broker: ActiveMq) -> None:
    """An MQTT client of ActiveMQ can forge the broker's advisory messages."""
    with jms(broker, "a") as (_, sink):
        (refused,) = send(sink, Message("ActiveMQ.Advisory.Connection", b"x", ONCE))

    assert refused.rule == "reserved"


def test_a_wildcard_selects_no_reserved_names(broker: ActiveMq) -> None:
    """ActiveMQ delivers `$SYS.x` to subscribers of `#` and `>`."""
    with jms(broker, ">") as (source, _), jms(broker, "unused") as (_, sink):
        lax = make_sink(broker.settings(dialects=("smf",)))  # as another client of ActiveMQ
        with opened(lax):
            send(lax, Message("$SYS.x", b"", ONCE))
        send(sink, Message("plain.x", b"", ONCE))
        names = Counter(message.address for message in collect(source, 1))

    assert names["plain.x"] == 1
    assert not [name for name in names if name.startswith(("$", "ActiveMQ."))]


@pytest.mark.parametrize("mode", [DeliveryMode.AT_MOST_ONCE, DeliveryMode.AT_LEAST_ONCE])
def test_the_delivery_mode_is_not_inverted(
    tmp_path: Path, mosquitto: Mosquitto, broker: ActiveMq, mode: DeliveryMode
) -> None:
    """ActiveMQ makes QoS 0 of persistent messages and QoS 1 of the others (AMQ-7045)."""
    with bridged(tmp_path, mosquitto, broker) as (_, root, _, out), jms(broker, "a") as (_, sink):
        send(sink, Message(f"{root}.a", b'"x"', Headers(mode=mode)))
        (got,) = collect(out, 1)

    assert got.headers.mode is mode


def test_properties_and_headers_of_jms_reach_mqtt(
    tmp_path: Path, mosquitto: Mosquitto, broker: ActiveMq
) -> None:
    properties: dict[str, Value] = {"urgency": "high", "size": 3, "flag": True, "JMSType": "kind"}
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE,
        priority=7,
        correlation_id="c-1",
        reply_to="answers.desk",
        content_type="application/json",
        properties=properties,
    )
    with bridged(tmp_path, mosquitto, broker) as (_, root, _, out), jms(broker, "a") as (_, sink):
        send(sink, Message(f"{root}.a", b'"x"', headers))
        (got,) = collect(out, 1)

    assert dict(got.headers.properties) == properties
    assert (got.headers.priority, got.headers.content_type) == (7, "application/json")
    assert got.headers.correlation_id in ("c-1", b"c-1")
    assert got.headers.reply_to == "answers/desk"  # translated like an address


def test_a_map_is_converted_as_the_route_says(
    tmp_path: Path, mosquitto: Mosquitto, broker: ActiveMq
) -> None:
    """ActiveMQ sends the map as Java prints it: `{a=b}`."""
    with bridged(tmp_path, mosquitto, broker) as (_, root, _, out), jms(broker, "a") as (_, sink):
        send(sink, Message(f"{root}.a", {"a": "b", "n": [1, 2]}, ONCE))
        (got,) = collect(out, 1)

    assert isinstance(got.payload, str | bytes)
    assert json.loads(got.payload) == {"a": "b", "n": [1, 2]}
