"""AMQP 1.0 at a RabbitMQ 4: other clients, fields that survive a relay, outcomes, a RabbitMQ 3."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.errors import EndpointError
from gateway.model.dead_letter_rule import MESSAGE_BYTES, NOT_AUTHORISED, UNROUTABLE
from gateway.model.message import DeliveryMode, Headers, Message, Value
from gateway.model.outcome import ACCEPTED, Outcome
from gateway.trial.brokers.rabbitmq import PROGRAM, RabbitmqNode
from gateway.wire.amqp import sections, values
from tests.brokers import servers
from tests.brokers.rabbitmq_server import Vhost
from tests.endpoints.exchange import collect, opened, send

pytestmark = pytest.mark.broker
PROPERTIES: dict[str, Value] = {
    "text": "Ünïcödé", "bytes": b"\0\xff", "small": -1, "long": 1 << 40, "double": 0.5,
    "yes": True, "no": False, "none": None, "list": [1, "a", [None]], "map": {"a": {"b": 2}},
    "amqp_x-opt-trace": "t-1", "amqp_x-opt-number": 7, "amqp_subject": "s", "amqp_group_id": "g",
    "amqp_group_sequence": 3, "amqp_content_encoding": "gzip", "amqp_reply_to_group_id": "r",
}  # fmt: skip


def endpoint(vhost: Vhost, **more: object) -> AmqpSettings:
    return replace(AmqpSettings(url=vhost.url, backoff_min=0.05), **more)  # type: ignore[arg-type]


def test_every_property_and_annotation_survives_a_relay(rabbitmq_4: Vhost) -> None:
    settings = endpoint(rabbitmq_4)
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE, priority=7, content_type="a/b", correlation_id=b"\0c",
        time=1_000_001, reply_to="t.answers", origin=("a", "b"), properties=PROPERTIES,
    )  # fmt: skip
    sent = Message("t.x", b"payload", headers)
    with opened(source := make_source(settings, [Subscription("#")]), sink := make_sink(settings)):
        assert send(sink, sent) == [ACCEPTED]
        (first,) = collect(source, 1)
        assert send(sink, first) == [ACCEPTED]
        (second,) = collect(source, 1)

    assert first == sent
    assert second == sent


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(values.described(sections.VALUE, values.encode_value([1, "a"])), id="list"),
        pytest.param(values.described(sections.VALUE, values.encode_value({"a": 1})), id="map"),
        pytest.param(values.described(sections.SEQUENCE, b"\x45") * 2, id="sequences"),
        pytest.param(values.described(sections.VALUE, b"\x98" + bytes(range(16))), id="uuid"),
        pytest.param(values.described(sections.VALUE, values.symbol("s")), id="symbol"),
    ],
)
def test_a_body_that_is_no_data_survives_a_relay(rabbitmq_4: Vhost, body: bytes) -> None:
    settings = endpoint(rabbitmq_4)
    kind = "value" if body[2] == sections.VALUE else "sequence"
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE, properties={"amqp_body": kind})
    with opened(source := make_source(settings, [Subscription("#")]), sink := make_sink(settings)):
        assert send(sink, Message("t.x", body, headers)) == [ACCEPTED]
        (got,) = collect(source, 1)

    assert got.payload == body
    assert got.headers.properties["amqp_body"] == kind


def test_numbers_that_are_none_survive_a_relay(rabbitmq_4: Vhost) -> None:
    """NaN and the infinities; Erlang has no such numbers."""
    settings = endpoint(rabbitmq_4)
    sent: dict[str, Value] = {"nan": nan, "infinity": inf, "list": [-inf]}
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE, properties=sent)
    with opened(source := make_source(settings, [Subscription("#")]), sink := make_sink(settings)):
        assert send(sink, Message("t.x", b"1", headers)) == [ACCEPTED]
        (got,) = collect(source, 1)

    assert repr(dict(got.headers.properties)) == repr(sent)


def test_clients_of_0_9_1_and_1_0_read_one_another(rabbitmq_4: Vhost) -> None:
    """The server changes one form into the other: a witness that is not a gateway."""
    own = endpoint(rabbitmq_4, queue="own")
    other = replace(rabbitmq_4.settings, queue="other")
    properties: dict[str, Value] = {"text": "a", "number": 5, "yes": True, "double": 0.5}
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE, priority=3, content_type="a/b", correlation_id="c",
        properties=properties,
    )  # fmt: skip
    sources = [make_source(each, [Subscription("t.#")]) for each in (own, other)]
    sinks = [make_sink(each) for each in (own, other)]
    with opened(*sources, *sinks):
        for sink in sinks:
            assert send(sink, Message("t.x", b"payload", headers)) == [ACCEPTED]
        found = [each for source in sources for each in collect(source, 2)]

    for got in found:
        assert (got.address, got.payload) == ("t.x", b"payload")
        assert properties.items() <= got.headers.properties.items()
        assert (got.headers.mode, got.headers.priority) == (headers.mode, headers.priority)
        assert (got.headers.content_type, got.headers.correlation_id) == ("a/b", "c")


def test_outcomes_of_names(rabbitmq_4: Vhost) -> None:
    rights = {"exchange": "amq.topic", "write": "^(?!t[.]refused$)", "read": ".*"}
    rabbitmq_4.server.api("PUT", f"topic-permissions/{rabbitmq_4.name}/guest", rights)
    sink = make_sink(endpoint(rabbitmq_4))
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
    with opened(sink):
        nobody, queue = send(
            sink, Message("t.x", b"1", headers), Message("queue:none", b"1", headers)
        )
        (long,) = send(sink, Message("t.x", bytes((16 << 20) + 1), headers))
        (refused,) = send(sink, Message("t.refused", b"1", headers))

    assert (nobody.rule, queue.rule, long.rule) == (UNROUTABLE, UNROUTABLE, MESSAGE_BYTES)
    assert refused.rule == NOT_AUTHORISED


def test_a_user_who_may_not_write_is_told_so(rabbitmq_4: Vhost) -> None:
    rights = {"configure": ".*", "write": "^$", "read": ".*"}
    rabbitmq_4.server.api("PUT", f"permissions/{rabbitmq_4.name}/guest", rights)
    sink = make_sink(endpoint(rabbitmq_4))
    with pytest.raises(EndpointError, match="may not write to the exchange"):
        sink.open()
    sink.close()


def test_a_full_queue_has_no_room(rabbitmq_4: Vhost) -> None:
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    rabbitmq_4.api("PUT", "queues", "/full", {"durable": True, "arguments": arguments})
    message = Message("queue:full", b"1", Headers(mode=DeliveryMode.AT_LEAST_ONCE))
    with opened(sink := make_sink(endpoint(rabbitmq_4))):
        answers = [send(sink, message)[0] for _ in range(3)]

    assert answers[0] == ACCEPTED
    assert answers[-1].outcome is Outcome.RETRY
    assert answers[-1].rule == "no-room"


def test_an_absent_exchange_is_named(rabbitmq_4: Vhost) -> None:
    settings = endpoint(rabbitmq_4, exchange="absent")
    for each in (make_sink(settings), make_source(settings, [Subscription("#")])):
        with pytest.raises(EndpointError, match="no exchange 'absent'"):
            each.open()
        each.close()


def test_a_stream_is_left_to_the_kind_that_reads_it(rabbitmq_4: Vhost) -> None:
    body = {"durable": True, "arguments": {"x-queue-type": "stream"}}
    rabbitmq_4.api("PUT", "queues", "/s", body)
    source = make_source(endpoint(rabbitmq_4), [Subscription("queue:s")])
    with pytest.raises(EndpointError, match="is a stream; read it with the kind `rabbitmq`"):
        source.open()
    source.close()


@pytest.mark.nightly
@pytest.mark.skipif(bool(servers.supply()), reason="another supply has a RabbitMQ 4")
def test_the_plug_in_of_rabbitmq_3_is_refused(tmp_path: Path) -> None:
    """It accepts messages that no queue takes."""
    servers.required(PROGRAM)
    node = RabbitmqNode(tmp_path, plugins=["rabbitmq_amqp1_0"])
    try:
        node.start()
        sink = make_sink(AmqpSettings(url=node.url))
        with pytest.raises(EndpointError, match=r"no queue takes; use the kind `rabbitmq`$"):
            sink.open()
        sink.close()
    finally:
        node.kill()


def test_messages_of_many_frames_and_more_than_the_window(rabbitmq_4: Vhost) -> None:
    settings = endpoint(rabbitmq_4, receive_window_bytes=65_536)
    sent = [
        Message("t.x", bytes([at]) * 3_000_000, Headers(mode=DeliveryMode.AT_LEAST_ONCE))
        for at in range(5)
    ]
    with opened(source := make_source(settings, [Subscription("#")]), sink := make_sink(settings)):
        assert send(sink, *sent) == [ACCEPTED] * 5
        got = collect(source, 5)

    assert [each.payload for each in got] == [each.payload for each in sent]
