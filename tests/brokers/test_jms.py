"""The JMS endpoint against a real ActiveMQ: bodies, headers, destinations and refusals."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import jpype
import pytest

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.jms import JmsSink, JmsSource, jvm, open_sink, open_source
from gateway.endpoints.jms.connection import connect, open_library
from gateway.endpoints.jms.value_codec import JavaByte, JavaFloat, JavaLong, JavaShort
from gateway.errors import DriverMissingError, EndpointError, NotConnectedError
from gateway.model.message import NO_HEADERS, DeliveryMode, Headers, Message, Payload, Value
from gateway.model.outcome import ACCEPTED, Outcome
from gateway.trial.brokers.activemq import ActiveMq
from tests.endpoints.exchange import QUIET, collect, hold, opened, receive, send
from tests.waiting import until

pytestmark = pytest.mark.broker

MEGABYTE = 1_048_576
NOW = time.time_ns() // 1_000_000 * 1_000
PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
_numbers = count()


@pytest.fixture
def broker(activemq: ActiveMq) -> ActiveMq:
    return activemq


@pytest.fixture
def name() -> str:
    return f"test{next(_numbers)}"


@contextmanager
def pair(
    broker: ActiveMq, *patterns: str, **changes: object
) -> Iterator[tuple[JmsSource, JmsSink]]:
    settings = broker.settings(**changes)
    source = open_source(settings, [Subscription(pattern) for pattern in patterns])
    sink = open_sink(settings)
    with opened(source, sink):
        yield source, sink


@contextmanager
def plain_session(broker: ActiveMq) -> Iterator[tuple[jvm.Java, jvm.JmsLibrary]]:
    """Open a session as another JMS program does."""
    settings = broker.settings()
    library = open_library(settings)
    connection = connect(settings, library, "")
    connection.connection.start()
    try:
        yield connection.connection.createSession(False, 1), library
    finally:
        connection.close(5)


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


@pytest.mark.parametrize("acknowledge", ["explicit", "client", "transacted"])
def test_settling_fifty_messages_leaves_the_others_unsettled(
    broker: ActiveMq, name: str, acknowledge: str
) -> None:
    queue, facts = f"queue:{name}", {"acknowledge": acknowledge, "batch": 50}
    with pair(broker, queue, **facts) as (source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(900)))
        settled = 0
        while settled < 50:
            batch = receive(source)
            batch.settle([ACCEPTED] * len(batch.messages))
            settled += len(batch.messages)
    with pair(broker, queue) as (source, _):
        left = [int(bytes(m.payload)) for m in collect(source, 900 - settled)]  # type: ignore[arg-type]  # bytes were sent

        assert source.receive(QUIET) is None

    assert left == list(range(settled, 900))


def test_settling_out_of_order_acknowledges_only_up_to_the_first_gap(
    broker: ActiveMq, name: str
) -> None:
    queue = f"queue:{name}"
    with pair(broker, queue, batch=1, acknowledge="explicit") as (source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(4)))
        batches = hold(source, 4)
        for place in (0, 2, 3):
            batches[place].settle([ACCEPTED])
    with pair(broker, queue) as (source, _):
        left = collect(source, 3)

    assert [m.payload for m in left] == [b"1", b"2", b"3"]
    assert all(m.headers.redelivered for m in left)


def test_a_source_with_a_full_window_waits_for_settlements(broker: ActiveMq, name: str) -> None:
    queue = f"queue:{name}"
    with pair(broker, queue, batch=10, receive_window=30, acknowledge="client") as (source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(50)))
        batches = hold(source, 30)

        assert source.receive(QUIET) is None
        for batch in batches:
            batch.settle([ACCEPTED] * len(batch.messages))
        assert len(collect(source, 50 - sum(len(b.messages) for b in batches))) > 0


@pytest.mark.parametrize("acknowledge", ["client", "transacted"])
def test_messages_acknowledged_together_are_acknowledged_once_per_window(
    broker: ActiveMq, name: str, acknowledge: str
) -> None:
    """Some message is always unsettled; library and server must still release the settled ones."""
    queue, facts = f"queue:{name}", {"acknowledge": acknowledge, "batch": 10, "receive_window": 30}
    under_way: deque[Batch] = deque()
    received = 0
    with pair(broker, queue, **facts) as (source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(200)))
        while received < 200:
            batch = source.receive(QUIET)
            if batch is not None:
                received += len(batch.messages)
                under_way.append(batch)
            if batch is None or len(under_way) > 1:
                oldest = under_way.popleft()
                oldest.settle([ACCEPTED] * len(oldest.messages))
    with pair(broker, queue) as (source, _):
        left = 0
        while (batch := source.receive(1)) is not None:
            left += len(batch.messages)

    assert 0 < left <= 30 + 10


@pytest.mark.parametrize(("prefetch", "ahead"), [(0, 70), (3, 3)])
def test_the_library_prefetches_only_the_configured_number(
    broker: ActiveMq, prefetch: int, ahead: int
) -> None:
    """ActiveMQ's default of 32,766 prefetched messages would not fit into the heap."""
    settings = broker.settings(prefetch=prefetch, batch=70)
    connection = connect(settings, open_library(settings), "")
    policy = connection.connection.getPrefetchPolicy()
    connection.close(5)

    assert {policy.getQueuePrefetch(), policy.getTopicPrefetch()} == {ahead}
    assert policy.getDurableTopicPrefetch() == ahead


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


def test_the_user_name_and_password_are_sent(broker: ActiveMq) -> None:
    settings = broker.settings(username="desk", password="s3cret")  # noqa: S106  # a sample
    connection = connect(settings, open_library(settings), "desk-1")
    try:
        told = connection.connection.getConnectionInfo()

        assert (str(told.getUserName()), str(told.getPassword())) == ("desk", "s3cret")
        assert str(connection.connection.getClientID()) == "desk-1"
    finally:
        connection.close(5)


def test_a_shared_subscription_needs_jms_2(broker: ActiveMq, name: str) -> None:
    source = open_source(broker.settings(shared="workers"), [Subscription(name)])
    with pytest.raises(EndpointError, match=r"needs JMS 2\.0, and this library is older"):
        source.open()


def test_the_error_names_an_unknown_class(broker: ActiveMq) -> None:
    sink = open_sink(broker.settings(factory="com.tibco.tibjms.TibjmsConnectionFactory"))
    with pytest.raises(DriverMissingError, match=r"TibjmsConnectionFactory.*tibjms\.jar"):
        sink.open()


def test_the_error_reports_a_class_path_without_the_interfaces(broker: ActiveMq) -> None:
    jars = broker.settings().classpath
    sink = open_sink(broker.settings(classpath=tuple(j for j in jars if "jms_1.1" not in j)))
    with pytest.raises(DriverMissingError, match=r"javax\.jms or jakarta\.jms"):
        sink.open()


def test_an_unreachable_broker_is_a_temporary_error(broker: ActiveMq) -> None:
    sink = open_sink(broker.settings(urls=("tcp://127.0.0.1:9",)))
    with pytest.raises(NotConnectedError, match="amq: "):
        sink.open()


def test_the_next_server_is_tried_after_a_failure(broker: ActiveMq, name: str) -> None:
    with pair(broker, name, urls=("tcp://127.0.0.1:9", broker.url)) as (source, sink):
        send(sink, Message(name, b"x"))

        assert [m.payload for m in collect(source, 1)] == [b"x"]


def test_the_factory_is_looked_up_in_jndi(broker: ActiveMq, name: str) -> None:
    facts = {
        "jndi_factory": "org.apache.activemq.jndi.ActiveMQInitialContextFactory",
        "jndi_url": broker.url,
        "lookup": "ConnectionFactory",
    }
    with pair(broker, name, **facts) as (source, sink):
        send(sink, Message(name, b"x"))

        assert [m.payload for m in collect(source, 1)] == [b"x"]


def test_properties_are_set_on_the_factory(broker: ActiveMq, name: str) -> None:
    facts = {"properties": ("clientIDPrefix=mine", "closeTimeout=500", "useAsyncSend=true")}
    with pair(broker, name, **facts) as (source, sink):
        send(sink, Message(name, b"x"))
        (got,) = collect(source, 1)

    assert got.payload == b"x"


def test_a_client_id_in_use_is_named_with_the_remedy(broker: ActiveMq, name: str) -> None:
    settings = broker.settings(client_id=name)
    first, second = (open_source(settings, [Subscription(name)]) for _ in range(2))
    with opened(first), pytest.raises(NotConnectedError, match="another client uses this id") as no:
        second.open()

    assert "(`client_id`)" in str(no.value)


@pytest.mark.parametrize(
    ("factory", "text"),
    [
        pytest.param("java.lang.String", "is no connection factory", id="another-class"),
        pytest.param(
            "org.apache.activemq.ActiveMQConnection", "cannot be created", id="no-constructor"
        ),
        pytest.param("org.example.Factory", "check `factory`", id="absent"),
    ],
)
def test_a_wrong_factory_is_named_with_the_remedy(
    broker: ActiveMq, factory: str, text: str
) -> None:
    with pytest.raises(EndpointError, match=text) as caught:
        open_sink(broker.settings(factory=factory)).open()

    assert factory in str(caught.value)
    assert not caught.value.retryable
