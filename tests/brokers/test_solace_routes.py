"""Routes between Solace and every other system, with the vendor's library on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.model.message import DeliveryMode, Headers, Message, Payload
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.activemq import FACTORY, client_jars
from gateway.trial.brokers.yami4 import Yami4Broker
from tests.archived import archived
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.solace_bridge import QUICK, gateway, open_sink, open_source, receive_all
from tests.endpoints.exchange import send
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
LEVELS = ["a", "größe", "v1.2", "with blank", "$x", "100%"]


@dataclass(frozen=True)
class FarSystem:
    """The system at the other end: configuration, separator, wildcard and possible payloads.

    `spelled` holds `LEVELS` in the spelling of its names.
    """

    settings: EndpointSettings
    yaml: str
    separator: str
    rest: str
    payloads: Sequence[Payload]
    spelled: Sequence[str]

    def name(self, *levels: str) -> str:
        return self.separator.join(levels)


BYTES: list[Payload] = [b"", bytes(range(256))]
TEXTS: list[Payload] = ["", "größe"]
MAPS: list[Payload] = [{"a": 1, "b": "x"}]
DOTTED = ["a", "größe", "v1%2E2", "with blank", "$x", "100%"]


def _mqtt(request: pytest.FixtureRequest, stack: ExitStack) -> FarSystem:
    del stack
    start: StartMosquitto = request.getfixturevalue("start_mosquitto")
    broker = start()
    return FarSystem(
        MqttSettings(name="far", host="127.0.0.1", port=broker.port),
        f"{{kind: mqtt, host: 127.0.0.1, port: {broker.port}, {QUICK}}}",
        "/",
        "#",
        [*BYTES, *TEXTS],
        LEVELS,
    )


def _jms(request: pytest.FixtureRequest, stack: ExitStack) -> FarSystem:
    del stack
    broker: ActiveMq = request.getfixturevalue("activemq")
    facts = f"classpath: [{', '.join(client_jars())}], factory: {FACTORY}, urls: ['{broker.url}']"
    return FarSystem(
        broker.settings(name="far"),
        f"{{kind: jms, dialect: ems, {facts}, {QUICK}}}",
        ".",
        ">",
        [*BYTES, *TEXTS, *MAPS],
        DOTTED,
    )


def _yami4(request: pytest.FixtureRequest, stack: ExitStack) -> FarSystem:
    del request
    broker = stack.enter_context(Yami4Broker("tcp://127.0.0.1:0"))
    return FarSystem(
        Yami4Settings(name="far", url=broker.url),
        f"{{kind: yami4, url: '{broker.url}', {QUICK}}}",
        ".",
        "*",
        [*BYTES, *TEXTS, *MAPS],
        DOTTED,
    )


SYSTEMS = {"mqtt": _mqtt, "jms": _jms, "yami4": _yami4}


@pytest.fixture(params=list(SYSTEMS))
def far(request: pytest.FixtureRequest) -> Iterator[FarSystem]:
    with ExitStack() as stack:
        yield SYSTEMS[request.param](request, stack)


@pytest.fixture
def office() -> Iterator[SolaceSettings]:
    with SmfBroker() as broker:
        yield SolaceSettings(name="office", url=broker.url)


def routes(far: FarSystem) -> str:
    there, back = far.name("in", "{rest...}"), far.name("out", "{region}", "{rest...}")
    return (
        f'  there: {{from: {{endpoint: far, pattern: "{there}"}},'
        ' to: {endpoint: office, template: "X/{rest...}"}}\n'
        '  back: {from: {endpoint: office, pattern: "Y/{region}/{rest...}"},'
        f' to: {{endpoint: far, template: "{back}"}}}}\n'
    )


def test_messages_cross_both_ways(tmp_path: Path, far: FarSystem, office: SolaceSettings) -> None:
    """Names with characters to escape, every type of payload, and the headers of both systems."""
    yaml = f"  far: {far.yaml}\n  office: {{kind: solace, url: '{office.url}', {QUICK}}}\n"
    sides = [(name, side) for name in ("far", "office") for side in ("source", "sink")]
    over = [(level, payload) for level in range(len(LEVELS)) for payload in far.payloads]
    with (
        gateway(tmp_path, yaml, routes(far), sides) as process,
        open_source(office, "X/>") as at_office,
        open_source(far.settings, far.name("out", far.rest)) as at_far,
        open_sink(far.settings) as from_far,
        open_sink(office) as from_office,
    ):
        out = [
            Message(far.name("in", far.spelled[level], str(n)), payload, PERSISTENT)
            for n, (level, payload) in enumerate(over)
        ]
        home = [
            Message(f"Y/{LEVELS[level]}/{n}", payload, PERSISTENT)
            for n, (level, payload) in enumerate(over)
        ]
        assert send(from_far, *out) == [ACCEPTED] * len(over)
        assert send(from_office, *home) == [ACCEPTED] * len(over)
        wanted = [f"X/{LEVELS[level]}/{n}" for n, (level, _) in enumerate(over)]
        there = receive_all(at_office, set(wanted))
        wanted_far = [
            far.name("out", far.spelled[level], str(n)) for n, (level, _) in enumerate(over)
        ]
        back = receive_all(at_far, set(wanted_far))
        assert process.end() == 0

    assert [message.address for message in there] == wanted
    assert [message.payload for message in there] == [message.payload for message in out]
    assert sorted(message.address for message in back) == sorted(wanted_far)
    sent = dict(zip(wanted_far, (message.payload for message in home), strict=True))
    assert {message.address: message.payload for message in back} == sent
    rows = archived(tmp_path)
    for route in ("there", "back"):
        legs = [row["leg"] for row in rows if row["route"] == route]
        assert legs.count("received") == legs.count("delivered") == len(over)
        assert not legs.count("dead")


def test_mqtt_headers_cross_to_solace_and_back(
    tmp_path: Path, start_mosquitto: StartMosquitto, office: SolaceSettings
) -> None:
    """Properties, correlation, a reply address, and a partition key from a capture."""
    port = start_mosquitto().port
    plant = MqttSettings(name="plant", host="127.0.0.1", port=port)
    yaml = (
        f"  plant: {{kind: mqtt, host: 127.0.0.1, port: {port}, {QUICK}}}\n"
        f"  office: {{kind: solace, url: '{office.url}', {QUICK}}}\n"
    )
    rules = (
        '  there:\n    from: {endpoint: plant, pattern: "in/{region}/{rest...}"}\n'
        "    to:\n      endpoint: office\n"
        '      template: "X/{region}/{rest...}"\n'
        '      headers: {set: {JMSXGroupID: "{region}"}}\n'
        '  back:\n    from: {endpoint: office, pattern: "X/{rest...}"}\n'
        '    to: {endpoint: plant, template: "out/{rest...}"}\n'
    )
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE,
        correlation_id=b"c-1",
        reply_to="in/answers/here",
        content_type="text/plain",
        properties={"desk": "fx"},
    )
    sides = [(name, side) for name in ("plant", "office") for side in ("source", "sink")]
    with (
        gateway(tmp_path, yaml, rules, sides) as process,
        open_source(office, "X/>") as at_office,
        open_source(plant, "out/#") as at_plant,
        open_sink(plant) as from_plant,
    ):
        send(from_plant, Message("in/emea/1", b"x", headers))
        (there,) = receive_all(at_office, {"X/emea/1"})
        (back,) = receive_all(at_plant, {"out/emea/1"})
        assert process.end() == 0

    for got in (there, back):
        assert got.payload == b"x"
        assert got.headers.correlation_id == b"c-1"
        assert got.headers.content_type == "text/plain"
        assert got.headers.properties["desk"] == "fx"
        assert got.headers.properties["JMSXGroupID"] == "emea"
        assert got.headers.reply_to == "in/answers/here"


def test_a_reply_address_is_translated_for_its_receiver(
    tmp_path: Path, activemq: ActiveMq, office: SolaceSettings
) -> None:
    facts = f"classpath: [{', '.join(client_jars())}], factory: {FACTORY}, urls: ['{activemq.url}']"
    yaml = (
        f"  core: {{kind: jms, dialect: ems, {facts}, {QUICK}}}\n"
        f"  office: {{kind: solace, url: '{office.url}', {QUICK}}}\n"
    )
    rules = (
        '  there: {from: {endpoint: core, pattern: "ask.{rest...}"},'
        ' to: {endpoint: office, template: "ask/{rest...}"}}\n'
        '  back: {from: {endpoint: office, pattern: "tell/{rest...}"},'
        ' to: {endpoint: core, template: "tell.{rest...}"}}\n'
    )
    core = activemq.settings(name="core")
    sides = [(name, side) for name in ("core", "office") for side in ("source", "sink")]
    with (
        gateway(tmp_path, yaml, rules, sides) as process,
        open_source(office, "ask/>") as at_office,
        open_source(core, "tell.>") as at_core,
        open_sink(core) as from_core,
        open_sink(office) as from_office,
    ):
        asked = Headers(mode=DeliveryMode.AT_LEAST_ONCE, reply_to="tell.v1%2E2.me", priority=7)
        send(from_core, Message("ask.price", {"id": 1, "deep": {"x": 2}}, asked))
        (question,) = receive_all(at_office, {"ask/price"})
        assert question.headers.reply_to is not None
        answer = Message(question.headers.reply_to, "42", question.headers)
        send(from_office, answer)
        (answered,) = receive_all(at_core, {"tell.v1%2E2.me"})
        assert process.end() == 0

    assert question.headers.reply_to == "tell/v1.2/me"
    assert question.payload == {"id": 1, "deep": {"x": 2}}
    assert (question.headers.priority, answered.headers.priority) == (7, 7)
    assert answered.payload == "42"


REQUESTS = """\
  ask: {from: {endpoint: office, pattern: "ask/{rest...}"}, to: {endpoint: plant}}
  answer:
    from: {endpoint: plant, pattern: "%2523P2P/{rest...}"}
    to: {endpoint: office, template: "#P2P/{rest...}"}
"""


def ask(url: str, topic: str, payload: str) -> str:
    """Return the answer to a request of the vendor's library, which waits at an inbox."""
    from solace.messaging.messaging_service import MessagingService  # noqa: PLC0415  # optional
    from solace.messaging.resources.topic import Topic  # noqa: PLC0415  # optional

    properties = {
        "solace.messaging.transport.host": url,
        "solace.messaging.service.vpn-name": "default",
        "solace.messaging.authentication.basic.username": "asker",
        "solace.messaging.authentication.basic.password": "",
    }
    service = MessagingService.builder().from_properties(properties).build().connect()
    try:
        publisher = (
            service.request_reply().create_request_reply_message_publisher_builder().build().start()
        )
        request = service.message_builder().build(payload)
        answer = publisher.publish_await_response(request, Topic.of(topic), 1_000 * int(PATIENCE))
        return str(answer.get_payload_as_string() or bytes(answer.get_payload_as_bytes()).decode())
    finally:
        service.disconnect()


def test_a_request_of_solace_gets_its_reply_from_mqtt(
    tmp_path: Path, start_mosquitto: StartMosquitto, office: SolaceSettings
) -> None:
    port = start_mosquitto().port
    plant = MqttSettings(name="service", host="127.0.0.1", port=port)
    yaml = (
        f"  plant: {{kind: mqtt, host: 127.0.0.1, port: {port}, {QUICK}}}\n"
        f"  office: {{kind: solace, url: '{office.url}', {QUICK}}}\n"
    )
    sides = [(name, side) for name in ("plant", "office") for side in ("source", "sink")]
    with (
        gateway(tmp_path, yaml, REQUESTS, sides) as process,
        open_source(plant, "ask/#") as at_plant,
        open_sink(plant) as from_plant,
        ThreadPoolExecutor(1) as pool,
    ):
        answer = pool.submit(ask, office.url, "ask/price/7", "EUR?")
        (question,) = receive_all(at_plant, {"ask/price/7"})
        inbox = question.headers.reply_to
        assert inbox is not None
        assert inbox.startswith("%2523P2P/v:")
        headers = Headers(plant.mode, correlation_id=question.headers.correlation_id)
        send(from_plant, Message("%2523P2P/QUE/PAY", b"to a queue", headers))
        send(from_plant, Message(inbox, b"9.80", headers))
        got = answer.result(PATIENCE)
        process.wait_for("first dead letter", rule="destination-kind")
        assert process.end() == 0

    assert got == "9.80"


def test_a_prefix_wildcard_selects_names_with_that_prefix(
    tmp_path: Path, start_mosquitto: StartMosquitto, office: SolaceSettings
) -> None:
    port = start_mosquitto().port
    plant = MqttSettings(name="plant", host="127.0.0.1", port=port)
    yaml = (
        f"  plant: {{kind: mqtt, host: 127.0.0.1, port: {port}, {QUICK}}}\n"
        f"  office: {{kind: solace, url: '{office.url}', {QUICK}}}\n"
    )
    rules = '  some: {from: {endpoint: office, pattern: "p/red*/*"}, to: {endpoint: plant}}\n'
    names = ["p/red/1", "p/redder/2", "p/blue/3", "p/infrared/4", "p/red/5/6", "p/red7/8"]
    with (
        gateway(tmp_path, yaml, rules, [("office", "source"), ("plant", "sink")]) as process,
        open_source(plant, "p/#") as at_plant,
        open_sink(office) as from_office,
    ):
        send(from_office, *(Message(name, b"", PERSISTENT) for name in names))
        got = receive_all(at_plant, {"p/red7/8"})
        assert process.end() == 0

    assert [message.address for message in got] == ["p/red/1", "p/redder/2", "p/red7/8"]
