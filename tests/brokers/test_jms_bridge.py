"""The gateway between MQTT or memory and a real JMS broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.connection import connect
from gateway.endpoints.jms.jvm import open_library
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.archived import archived
from tests.brokers.controlled_activemq import ActiveMq
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

CONFIG = """\
endpoints:
  lab: {{kind: memory, dialect: mqtt, broker: lab-{run}}}
  ems: {{kind: jms, dialect: ems, classpath: [{jars}], factory: {factory}, urls: ["{url}"]}}
routes:
{routes}
archive: {{path: {archive}}}
"""
PERSISTENT = DeliveryMode.AT_LEAST_ONCE
CONFIRMED = Headers(mode=PERSISTENT)


def start(folder: Path, broker: ActiveMq, routes: str) -> tuple[Gateway, str]:
    run = uuid4().hex
    file = folder / "gateway.yaml"
    text = CONFIG.format(
        run=run,
        jars=", ".join(client_jars()),
        factory=FACTORY,
        url=broker.url,
        routes=routes,
        archive=folder / "archive",
    )
    file.write_text(text)
    gateway = Gateway(load(file))
    gateway.start()
    until(lambda: all(state.connection.value == "connected" for state in gateway.states))
    return gateway, f"lab-{run}"


@contextmanager
def requester(broker: ActiveMq) -> Iterator[jvm.Java]:
    """Open a session as another JMS program does."""
    settings = broker.settings()
    connection = connect(settings, open_library(settings), "")
    connection.connection.start()
    try:
        yield connection.connection.createSession(False, 1)
    finally:
        connection.close(5)


def test_names_are_translated_to_ems_and_back_without_loss(
    tmp_path: Path, activemq: ActiveMq
) -> None:
    gateway, lab = start(
        tmp_path,
        activemq,
        """\
  there:
    from: {endpoint: lab, pattern: "in/{rest...}"}
    to: {endpoint: ems, template: "X.{rest...}"}
  back:
    from: {endpoint: ems, pattern: "X.{rest...}"}
    to: {endpoint: lab, template: "out/{rest...}"}
""",
    )
    into = make_sink(MemorySettings(name="in", dialect="mqtt", broker=lab))
    out = make_source(
        MemorySettings(name="out", dialect="mqtt", broker=lab), [Subscription("out/#")]
    )
    into.open()
    out.open()
    odd = ["a", "v1.2", "", "a b", "a,b", "x?y=1", "größe", "%2E", "$x"]
    sent = [f"in/{odd[n % len(odd)]}/{n}" for n in range(900)]
    headers = Headers(mode=PERSISTENT)
    into.send([Message(name, name.encode(), headers) for name in sent], lambda _: None)
    crossing = [name for name in sent if not set(name) & set(",?")]  # ActiveMQ alters the others
    arrived: list[Message] = []

    def all_came() -> bool:
        if (batch := out.receive(0.1)) is not None:
            arrived.extend(batch.messages)
            batch.settle([ACCEPTED] * len(batch.messages))
        return len(arrived) >= len(crossing)

    until(all_came)
    assert gateway.stop(PATIENCE)
    assert [m.address for m in arrived] == [name.replace("in/", "out/", 1) for name in crossing]
    assert [m.payload for m in arrived] == [name.encode() for name in crossing]
    assert gateway.counters["there"].rules == {"name-altered": len(sent) - len(crossing)}
    rows = Counter((row["route"], row["leg"]) for row in archived(tmp_path))
    assert rows["there", "received"] == rows["there", "delivered"] + rows["there", "dead"]
    assert rows["back", "received"] == rows["back", "delivered"] == len(arrived)


def test_a_selector_is_evaluated_by_the_jms_broker(tmp_path: Path, activemq: ActiveMq) -> None:
    topic = f"S{uuid4().hex}"
    gateway, lab = start(
        tmp_path,
        activemq,
        f"""\
  urgent:
    from: {{endpoint: ems, pattern: "{topic}.*", selector: "urgency = 'high'"}}
    to: {{endpoint: lab}}
""",
    )
    out = make_source(MemorySettings(name="out", dialect="mqtt", broker=lab), [Subscription("#")])
    out.open()
    sink = make_sink(activemq.settings(name="feed"))
    sink.open()
    messages = [
        Message(f"{topic}.{n}", b"", Headers(properties={"urgency": ("low", "high")[n % 2]}))
        for n in range(10)
    ]
    sink.send(messages, lambda _: None)
    until(lambda: gateway.counters["urgent"].delivered == 5)
    sink.close()
    assert gateway.stop(PATIENCE)

    assert gateway.counters["urgent"].received == 5
    assert gateway.counters["urgent"].unselected == 0


def test_an_imported_message_is_not_sent_to_its_topic_through_another_system(
    tmp_path: Path, activemq: ActiveMq
) -> None:
    topic = f"I{uuid4().hex}"
    gateway, _ = start(
        tmp_path,
        activemq,
        f"""\
  out:
    from: {{endpoint: ems, pattern: "{topic}.{{x}}"}}
    to: {{endpoint: lab, template: "{topic}/{{x}}"}}
  back:
    from: {{endpoint: lab, pattern: "{topic}/{{x}}"}}
    to: {{endpoint: ems, template: "{topic}.{{x}}"}}
""",
    )
    back = gateway.counters["back"]
    with requester(activemq) as session:
        message = session.createTextMessage("x")
        message.setBooleanProperty("JMS_TIBCO_IMPORTED", True)
        session.createProducer(session.createTopic(f"{topic}.a")).send(message)
        until(lambda: back.loops + back.dead == 1)  # by the runtime or by the sink
    assert gateway.stop(PATIENCE)

    assert (gateway.counters["out"].delivered, back.delivered) == (1, 0)


@pytest.mark.parametrize("drop", [False, True], ids=["mapped", "the-route-drops-it"])
def test_a_temporary_reply_address_is_translated_by_the_route(
    tmp_path: Path, activemq: ActiveMq, drop: bool
) -> None:
    topic, dropped = f"Q{uuid4().hex}", "reply_to" if drop else ""
    gateway, lab = start(
        tmp_path,
        activemq,
        f"""\
  requests:
    from: {{endpoint: ems, pattern: "{topic}.{{x}}"}}
    to: {{endpoint: lab, template: "requests/{{x}}", headers: {{drop: [{dropped}]}}}}
  answers:
    from: {{endpoint: lab, pattern: "{{answer}}"}}
    to: {{endpoint: ems, template: "tempqueue:{{answer|slice:10:}}", lossy: true}}
""",
    )
    settings = MemorySettings(name="desk", dialect="mqtt", broker=lab)
    desk, answers = make_source(settings, [Subscription("requests/#")]), make_sink(settings)
    with opened(desk, answers), requester(activemq) as session:
        reply = session.createTemporaryQueue()
        request = session.createTextMessage("?")
        request.setJMSReplyTo(reply)
        session.createProducer(session.createTopic(f"{topic}.a")).send(request)
        (got,) = collect(desk, 1)
        address = got.headers.reply_to
        if address is not None:
            send(answers, Message(address, "!", Headers(mode=PERSISTENT)))
            until(
                lambda: (
                    gateway.counters["answers"].delivered + gateway.counters["answers"].dead == 1
                )
            )
            assert gateway.counters["answers"].rules == {}
            answer = session.createConsumer(reply).receive(20_000)
            assert str(answer.getText()) == "!"
    assert gateway.stop(PATIENCE)

    assert (address is None) is drop


def test_a_publisher_chooses_neither_a_queue_nor_a_reply_queue(
    tmp_path: Path, activemq: ActiveMq
) -> None:
    name = f"PAY{uuid4().hex}"
    gateway, lab = start(
        tmp_path,
        activemq,
        f"""\
  captured:
    from: {{endpoint: lab, pattern: "in/{{rest...}}"}}
    to: {{endpoint: ems, template: "{{rest...}}"}}
  joined:
    from: {{endpoint: lab, pattern: "joined/{{rest}}"}}
    to: {{endpoint: ems, template: "que{{rest}}"}}
  fixed:
    from: {{endpoint: lab, pattern: "fixed/{{rest...}}"}}
    to: {{endpoint: ems, template: "queue:{name}.{{rest...}}"}}
""",
    )
    into = make_sink(MemorySettings(name="in", dialect="mqtt", broker=lab))
    patterns = [f"queue:{name}", f"{name}.asked", f"queue:{name}.queue:x"]
    out = make_source(activemq.settings(name="witness"), [Subscription(each) for each in patterns])
    asking = Headers(mode=PERSISTENT, reply_to=f"queue:{name}")
    sent = [
        Message(f"in/queue:{name}", b"captured", CONFIRMED),
        Message(f"joined/ue:{name}", b"joined", CONFIRMED),
        Message(f"in/{name}/asked", b"asked", asking),
        Message("fixed/queue:x", b"fixed", CONFIRMED),
    ]
    with opened(out, into):
        send(into, *sent)
        until(lambda: sum(each.dead + each.delivered for each in gateway.counters.values()) == 4)
        arrived = {m.payload: m for m in collect(out, 2)}
        assert gateway.stop(PATIENCE)

    refused = {"destination-kind": 1}
    assert [gateway.counters[each].rules for each in ("captured", "joined")] == [refused] * 2
    assert arrived.keys() == {b"asked", b"fixed"}
    assert arrived[b"asked"].headers.reply_to is None
    assert gateway.counters["captured"].lost_fields == {"reply_to": 1}
