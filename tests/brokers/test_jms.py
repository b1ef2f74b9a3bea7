"""The JMS endpoint against a real ActiveMQ: bodies, headers and destinations."""

from __future__ import annotations

import time

import jpype
import pytest

from gateway.endpoints.jms import jvm, open_sink
from gateway.endpoints.jms.value_codec import JavaByte, JavaFloat, JavaLong, JavaShort
from gateway.model.message import NO_HEADERS, DeliveryMode, Headers, Message, Payload, Value
from gateway.model.outcome import ACCEPTED, Outcome
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.jms_pairs import MEGABYTE, NOW, PERSISTENT, broker, name, pair, plain_session
from tests.endpoints.exchange import QUIET, collect, opened, send
from tests.waiting import until

__all__ = ["broker", "name"]  # fixtures

pytestmark = pytest.mark.broker


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("text é 🜚 \0", id="text"),
        pytest.param("", id="empty-text"),
        pytest.param("half a pair \ud800", id="lone-surrogate"),
        pytest.param("\ufffd", id="replacement-character"),
        pytest.param(bytes(range(256)), id="bytes"),
        pytest.param(b"\0\1" * (MEGABYTE // 2), id="megabyte"),
        pytest.param({"a": 1, "b": None, "c": "x", "d": b"y", "e": 1.5, "f": True}, id="map"),
        pytest.param({"deep": {"list": [1, "two", {"three": 3.0}]}}, id="nested-map"),
        pytest.param({}, id="empty-map"),
    ],
)
@pytest.mark.parametrize("headers", [NO_HEADERS, PERSISTENT], ids=["np", "persistent"])
def test_a_body_is_received_unchanged(
    broker: ActiveMq, name: str, payload: Payload, headers: Headers
) -> None:
    with pair(broker, name) as (source, sink):
        assert send(sink, Message(name, payload, headers)) == [ACCEPTED]
        (got,) = collect(source, 1)

    assert (got.address, got.payload, type(got.payload)) == (name, payload, type(payload))
    assert got.headers.mode is headers.mode


@pytest.mark.parametrize(
    ("mark", "payload"),
    [
        pytest.param("stream", {"stream": [1, "x", b"y", JavaShort(3)]}, id="stream"),
        pytest.param("none", b"", id="no-body"),
        pytest.param("null", "", id="null-text"),
    ],
)
def test_the_type_of_other_bodies_is_kept_in_a_property(
    broker: ActiveMq, name: str, mark: str, payload: Payload
) -> None:
    with pair(broker, name) as (source, sink):
        send(sink, Message(name, payload, Headers(properties={"jms.body": mark})))
        (got,) = collect(source, 1)

    assert (got.payload, dict(got.headers.properties)) == (payload, {"jms.body": mark})


def test_all_headers_and_properties_of_every_type_are_received_unchanged(
    broker: ActiveMq, name: str
) -> None:
    properties: dict[str, Value] = {
        "flag": True, "byte": JavaByte(-1), "short": JavaShort(300), "int": 70_000,
        "long": JavaLong(1), "float": JavaFloat(0.5), "double": 0.1, "text": "x", "none": None,
        "with-dash": 1, "select": "y", "between": "reserved", "bytes": b"\0", "list": [1, {"a": 2}],
        "huge": 2**80, "JMSType": "kind", "JMSXGroupID": "group", "JMSXGroupSeq": 3,
        "JMS_TIBCO_SS_SENDER": "s", "gateway_id": "00ff",
    }  # fmt: skip
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE,
        priority=7,
        expiry=NOW + 3_600_000_001,
        time=NOW - 1,
        content_type="text/plain",
        correlation_id="id-1",
        reply_to="queue:answers",
        source_id="first-id",
        origin=("one", "two"),
        properties=properties,
    )
    with pair(broker, name) as (source, sink):
        assert send(sink, Message(name, b"x", headers)) == [ACCEPTED]
        (got,) = collect(source, 1)
        assert sink.counts == {"calls": 1, "sent": 1}

    assert dict(got.headers.properties) == properties
    assert got.headers == headers
    kinds = {key: type(value) for key, value in got.headers.properties.items()}
    assert kinds == {key: type(value) for key, value in properties.items()}


@pytest.mark.parametrize("correlation", [b"\0\xff", b"text", "text"])
def test_a_correlation_id_keeps_its_type(
    broker: ActiveMq, name: str, correlation: bytes | str
) -> None:
    with pair(broker, name) as (source, sink):
        send(sink, Message(name, b"", Headers(correlation_id=correlation)))
        (got,) = collect(source, 1)

    assert got.headers.correlation_id == correlation


def test_the_fields_of_jms_are_received(broker: ActiveMq, name: str) -> None:
    with pair(broker, name) as (source, sink):
        send(sink, Message(name, b"x", PERSISTENT))
        (got,) = collect(source, 1)

    assert got.headers.source_id is not None
    assert got.headers.source_id.startswith("ID:")
    assert got.headers.time is not None
    assert abs(got.headers.time - time.time_ns() // 1000) < 60_000_000
    assert got.headers.priority is None  # 4, the default


def test_wildcards_select_as_in_ems(broker: ActiveMq, name: str) -> None:
    with pair(broker, f"{name}.>", f"{name}.a.*", f"{name}.*") as (source, sink):
        addresses = [f"{name}{end}" for end in ("", ".a", ".a.b", ".a.b.c")]
        send(sink, *(Message(address, b"") for address in addresses))
        got = collect(source, 3)

        assert source.receive(QUIET) is None

    assert [message.address for message in got] == addresses[1:]
    assert (
        source.counts["unwanted"] == 3
    )  # the parent, and two messages that a later pattern selects


@pytest.mark.parametrize("acknowledge", ["explicit", "client", "transacted"])
def test_unwanted_messages_are_acknowledged(broker: ActiveMq, name: str, acknowledge: str) -> None:
    facts = {"client_id": name, "durable": "d", "acknowledge": acknowledge}
    with pair(broker, f"{name}.>", **facts) as (source, sink):
        for end in ("", ".a", "", ".b", ""):
            send(sink, Message(name + end, b"", PERSISTENT))
        assert [m.address for m in collect(source, 2)] == [f"{name}.a", f"{name}.b"]
        until(lambda: source.receive(0) is None and source.counts["unwanted"] == 3, "the rest")
    with pair(broker, f"{name}.>", **facts) as (source, _):
        assert source.receive(QUIET) is None
        assert source.counts["unwanted"] == 0


def test_a_queue_and_a_topic_of_one_name_are_different_destinations(
    broker: ActiveMq, name: str
) -> None:
    with pair(broker, name, f"queue:{name}") as (source, sink):
        send(sink, Message(name, b"topic"), Message(f"queue:{name}", b"queue"))
        got = {message.address: message.payload for message in collect(source, 2)}

    assert got == {name: b"topic", f"queue:{name}": b"queue"}


def test_queues_can_be_the_default_destination(broker: ActiveMq, name: str) -> None:
    with pair(broker, name, f"topic:{name}", destination="queue") as (source, sink):
        send(sink, Message(name, b"queue"), Message(f"topic:{name}", b"topic"))
        got = {message.address: message.payload for message in collect(source, 2)}

    assert got == {name: b"queue", f"topic:{name}": b"topic"}


def test_a_selector_is_evaluated_by_the_server(broker: ActiveMq, name: str) -> None:
    with pair(broker, name, selector="colour = 'red' AND size > 3") as (source, sink):
        for colour, size in (("red", 1), ("red", 5), ("blue", 5)):
            send(sink, Message(name, colour, Headers(properties={"colour": colour, "size": size})))
        got = collect(source, 1)

        assert source.receive(QUIET) is None

    assert [dict(m.headers.properties) for m in got] == [{"colour": "red", "size": 5}]


def test_a_durable_wildcard_subscription_keeps_messages_while_disconnected(
    broker: ActiveMq, name: str
) -> None:
    facts = {"client_id": name, "durable": "gw-{pattern}"}
    with pair(broker, f"{name}.>", f"{name}", **facts) as (_, sink):
        pass
    with opened(sink := open_sink(broker.settings())):
        send(sink, *(Message(f"{name}.a", str(i).encode(), PERSISTENT) for i in range(10)))
    with pair(broker, f"{name}.>", f"{name}", **facts) as (source, _):
        got = collect(source, 10)

    assert [m.payload for m in got] == [str(i).encode() for i in range(10)]


@pytest.mark.parametrize(
    ("dialect", "wrong", "rule"),
    [
        pytest.param("ems", "a.>", "wildcard", id="wildcard"),
        pytest.param("ems", "$SYS.x", "dollar-first", id="dollar"),
        pytest.param("ems", "a..b", "empty-element", id="empty-element"),
        pytest.param("smf", " a", "name-altered", id="blank-first"),
        pytest.param("smf", "a ", "name-altered", id="blank-last"),
        pytest.param("smf", "a,b", "name-altered", id="comma-splits"),
        pytest.param("smf", "a?x=1", "name-altered", id="question-mark-cuts"),
        pytest.param("smf", "x" * 33_003, "length", id="33-kb"),
    ],
)
@pytest.mark.parametrize("headers", [NO_HEADERS, PERSISTENT], ids=["np", "persistent"])
def test_only_the_message_whose_name_the_broker_would_change_is_refused(  # the row
    broker: ActiveMq, name: str, dialect: str, wrong: str, rule: str, headers: Headers
) -> None:
    with pair(broker, name, dialects=(dialect,)) as (source, sink):
        before, refused, after = send(
            sink,
            Message(name, b"1", headers),
            Message(wrong, b"x", headers),
            Message(name, b"2", headers),
        )
        got = collect(source, 2)

    assert (before, after) == (ACCEPTED, ACCEPTED)
    assert (refused.outcome, refused.rule) == (Outcome.REJECTED, rule)
    assert refused.reason
    assert [message.payload for message in got] == [b"1", b"2"]


def test_an_expired_message_is_not_sent(broker: ActiveMq, name: str) -> None:
    with pair(broker, name) as (_, sink):
        late, fine = send(
            sink, Message(name, b"", Headers(expiry=1)), Message(name, b"", PERSISTENT)
        )

    assert (late.rule, fine) == ("expired", ACCEPTED)


def test_a_malformed_map_is_reported_and_its_neighbours_are_received(
    broker: ActiveMq, name: str
) -> None:
    with pair(broker, name) as (source, sink), plain_session(broker) as (session, library):
        send(sink, Message(name, b"1"))
        broken = session.createMapMessage()
        broken.setString("a", "b")
        broken.setStringProperty("kept", "yes")
        content = library.find("org.apache.activemq.util.ByteSequence")
        broken.beforeMarshall(None)
        broken.setContent(content(jvm.byte_array(b"\0\0\0\7\xff\xff")))
        session.createProducer(session.createTopic(name)).send(broken)
        send(sink, Message(name, b"2"))
        first, second, third = collect(source, 3)

    assert [first.payload, second.payload, third.payload] == [b"1", b"", b"2"]
    assert second.headers.properties["jms.body"] == "unreadable"
    assert second.headers.properties["jms.error"]
    assert second.headers.properties["kept"] == "yes"
    assert source.counts["unreadable"] == 1


def test_an_object_message_is_received_as_bytes_and_not_deserialized(
    broker: ActiveMq, name: str
) -> None:
    with pair(broker, name) as (source, sink), plain_session(broker) as (session, library):
        value = library.find("java.util.ArrayList")()
        message = session.createObjectMessage(value)
        session.createProducer(session.createTopic(name)).send(message)
        (got,) = collect(source, 1)
        send(sink, got)
        (again,) = collect(source, 1)

    assert isinstance(got.payload, bytes)
    assert got.payload.startswith(b"\xac\xed\0\5")  # Java's serialization
    assert b"java.util.ArrayList" in got.payload
    assert got.headers.properties["jms.body"] == "object"
    assert (again.payload, again.headers.properties["jms.body"]) == (got.payload, "object")


@pytest.mark.parametrize("temporary", ["map", "drop"])
def test_a_request_is_answered_through_a_temporary_queue(
    broker: ActiveMq, name: str, temporary: str
) -> None:
    with (
        pair(broker, name, temporary_reply=temporary) as (source, sink),
        plain_session(broker) as (session, _),
    ):
        answers = session.createTemporaryQueue()
        request = session.createTextMessage("?")
        request.setJMSReplyTo(answers)
        session.createProducer(session.createTopic(name)).send(request)
        (got,) = collect(source, 1)
        address = got.headers.reply_to
        if temporary == "drop":
            assert address is None
            assert source.counts["dropped_replies"] == 1
            return
        assert address is not None
        assert address.startswith("tempqueue:")
        assert send(sink, Message(address, "!")) == [ACCEPTED]
        answer = session.createConsumer(answers).receive(5_000)

        assert str(answer.getText()) == "!"


def test_an_unknown_temporary_queue_is_refused(broker: ActiveMq) -> None:
    with opened(sink := open_sink(broker.settings())):
        (refused,) = send(sink, Message("tempqueue:ID:x", b""))

    assert refused.rule == "temporary-unknown"


def test_an_imported_message_is_never_sent_to_its_topic(broker: ActiveMq, name: str) -> None:
    with pair(broker, name) as (source, sink), plain_session(broker) as (session, _):
        imported = session.createTextMessage("from outside")
        imported.setBooleanProperty("JMS_TIBCO_IMPORTED", True)
        session.createProducer(session.createTopic(name)).send(imported)
        (got,) = collect(source, 1)
        back, elsewhere, queue = send(
            sink,
            got,
            Message(f"{name}.copy", got.payload, got.headers),
            Message(f"queue:{name}", got.payload, got.headers),
        )

    assert (back.outcome, back.rule) == (Outcome.REJECTED, "imported-loop")
    assert (elsewhere, queue) == (ACCEPTED, ACCEPTED)
    assert source.counts["imported"] == 1


def test_properties_of_rendezvous_and_smartsockets_keep_their_types(
    broker: ActiveMq, name: str
) -> None:
    """EMS User's Guide, tables 64 and 69; the second crossing decodes the escaped names."""
    with pair(broker, name) as (source, sink), plain_session(broker) as (session, _):
        imported = session.createTextMessage("x")
        imported.setStringProperty("JMS_TIBCO_CM_PUBLISHER", "RVCM.1")
        imported.setLongProperty("JMS_TIBCO_CM_SEQUENCE", 7)
        imported.setStringProperty("JMS_TIBCO_SS_SENDER", "/_host_1")
        imported.setStringProperty("JMS_TIBCO_SS_CORRELATION_ID", "c-1")
        imported.setIntProperty("JMS_TIBCO_SS_TYPE_NUM", -1)
        session.createProducer(session.createTopic(name)).send(imported)
        (got,) = collect(source, 1)
        send(sink, got)
        (again,) = collect(source, 1)

    properties = got.headers.properties
    assert dict(properties) == {
        "JMS_TIBCO_CM_PUBLISHER": "RVCM.1",
        "JMS_TIBCO_CM_SEQUENCE": JavaLong(7),
        "JMS_TIBCO_SS_SENDER": "/_host_1",
        "JMS_TIBCO_SS_CORRELATION_ID": "c-1",
        "JMS_TIBCO_SS_TYPE_NUM": -1,
    }
    assert type(properties["JMS_TIBCO_CM_SEQUENCE"]) is JavaLong
    assert got.headers.correlation_id == again.headers.correlation_id == "c-1"
    assert dict(again.headers.properties) == dict(properties)


def test_only_a_message_too_large_for_javas_heap_is_refused(broker: ActiveMq, name: str) -> None:
    """Java copies a message several times; a full heap would end the process."""
    queue = f"queue:{name}"
    with pair(broker, queue) as (source, sink):
        room = jvm.max_heap() // 8
        payloads = [b"before", bytes(room), bytes(room - 1_000), b"behind"]
        outcomes = send(sink, *(Message(queue, each, PERSISTENT) for each in payloads))
        lengths = [len(m.payload) for m in collect(source, 3)]

    assert [each.outcome for each in outcomes] == [
        Outcome.ACCEPTED, Outcome.REJECTED, Outcome.ACCEPTED, Outcome.ACCEPTED,
    ]  # fmt: skip
    assert outcomes[1].rule == "message-size"
    assert lengths == [6, room - 1_000, 6]


def test_java_collections_do_not_trigger_python_collections(broker: ActiveMq, name: str) -> None:
    """JPype's collector thread is stopped, and Java holds no Python object that would need it."""
    with pair(broker, name) as (source, sink):
        send(sink, *(Message(name, {"a": i}, PERSISTENT) for i in range(10)))
        collect(source, 10)
    queue = jpype.JClass("org.jpype.ref.JPypeReferenceQueue").getInstance()

    assert not queue.isRunning()
    assert queue.getQueueSize() == 0
