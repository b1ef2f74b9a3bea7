"""RabbitMQ beside the conformance suite: returns, bindings, queues, streams, alarms and headers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest

from gateway.endpoints.base import Source, Subscription, address_of
from gateway.endpoints.rabbitmq import intake
from gateway.endpoints.rabbitmq import sink as rabbitmq_sink
from gateway.endpoints.rabbitmq.sink import REFUSED_FOR
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.source_memory import KeepsMemory
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.message import DeliveryMode, DroppedPayload, Headers, Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Outcome, Settlement
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.inbound.source_memories import SourceMemories
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.record.counters import EndpointState
from gateway.trial.brokers.listening import free_port
from tests.brokers.rabbitmq_server import RabbitmqServer, Vhost
from tests.endpoints.exchange import (
    QUIET,
    Answer,
    collect,
    hold,
    opened,
    receive,
    reopen,
    send,
    wait_for_loss,
)
from tests.memories import ROLE, memories_in
from tests.runtime.outbound_batches import batch_of
from tests.waiting import until

T = TypeVar("T")
MODE = DeliveryMode.AT_LEAST_ONCE
QUEUE = "gateway-rabbitmq-r"  # of the sources below


def source_of(
    settings: RabbitmqSettings, *patterns: str, store: SourceMemories | None = None
) -> Source:
    wanted = [Subscription(each) for each in patterns or ("t.#",)]
    source = make_source(settings, wanted, instance="r")
    assert isinstance(source, KeepsMemory)
    source.memory.keep_in(store, ROLE)
    return source


def say(number: int, key: str = "t.x", source_id: str | None = None) -> Message:
    return Message(key, str(number).encode(), Headers(mode=MODE, source_id=source_id))


def numbers(messages: list[Message]) -> list[int]:
    return [int(bytes(each.payload)) for each in messages]  # type: ignore[arg-type]  # bytes were sent


@contextmanager
def plain_channel(vhost: Vhost) -> Iterator[Any]:
    """A channel of another client."""
    import pika  # noqa: PLC0415  # the fixture skips without it

    connection = pika.BlockingConnection(pika.URLParameters(vhost.url))
    try:
        yield connection.channel()
    finally:
        connection.close()


def test_an_unroutable_message_is_a_dead_letter_and_the_others_are_sent(rabbitmq: Vhost) -> None:
    sink = make_sink(rabbitmq.settings)
    with opened(source_of(rabbitmq.settings), sink):
        keys = ["t.x", "other", "t.y", "other", "other.z", "t.x"]
        answers = send(sink, *(say(1, key) for key in keys))

    assert [each.rule for each in answers] == ["", "unroutable", "", "unroutable", "unroutable", ""]
    assert answers[1].outcome is Outcome.REJECTED
    assert "'other'" in answers[1].reason


STAMP = """
    Form = fun(Text) ->
        {ok, Tokens, _} = erl_scan:string(Text), {ok, Form} = erl_parse:parse_form(Tokens), Form
    end,
    {ok, Module, Code} = compile:forms([Form(Text) || Text <- [
        "-module(stamp).",
        "-behaviour(rabbit_channel_interceptor).",
        "-export([description/0, init/1, applies_to/0, intercept/3]).",
        "description() -> [].",
        "init(_) -> none.",
        "applies_to() -> ['basic.publish'].",
        "intercept(Method, none, _) -> {Method, none};
         intercept(Method, Content, _) ->
            Read = rabbit_binary_parser:ensure_content_decoded(Content),
            Stamped = setelement(11, element(3, Read), 7),
            {Method, setelement(4, setelement(3, Read, Stamped), none)}."
    ]]),
    {module, Module} = code:load_binary(Module, "stamp", Code),
    rabbit_registry:register(channel_interceptor, <<"stamp">>, Module).
"""


def test_an_unroutable_message_that_the_server_has_stamped_is_a_dead_letter(
    rabbitmq: Vhost,
) -> None:
    sink = make_sink(rabbitmq.settings)
    rabbitmq.server.ctl("eval", STAMP)
    try:
        with opened(source_of(rabbitmq.settings), sink):
            keys = ["t.x", "other", "other", "t.y", "other.z", "t.x"]
            answers = send(sink, *(say(1, key) for key in keys))
    finally:
        stop = 'rabbit_registry:unregister(channel_interceptor, <<"stamp">>).'
        rabbitmq.server.ctl("eval", stop)

    assert [each.rule for each in answers] == ["", *["unroutable"] * 2, "", "unroutable", ""]


def writer(rabbitmq: Vhost, keys: str) -> RabbitmqSettings:
    """Return the settings of a user who may write `keys`, a regular expression."""
    user, vhost, exchange = f"writer-{rabbitmq.name}", rabbitmq.name, rabbitmq.settings.exchange
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    topics = {"exchange": exchange, "write": keys, "read": ".*"}
    rabbitmq.server.api("PUT", f"users/{user}", {"password": user, "tags": ""})
    rabbitmq.server.api("PUT", f"permissions/{vhost}/{user}", everything)
    rabbitmq.server.api("PUT", f"topic-permissions/{vhost}/{user}", topics)
    return replace(rabbitmq.settings, username=user, password=user)


def test_a_key_that_the_user_may_not_write_settles_its_messages_alone(rabbitmq: Vhost) -> None:
    sink, source = make_sink(writer(rabbitmq, "^t[.]good$")), source_of(rabbitmq.settings)
    wanted = [say(number, "t.bad" if number % 10 == 3 else "t.good") for number in range(40)]
    answers: dict[int, Settlement] = {}
    with opened(source, sink):
        while left := [number for number in range(40) if number not in answers]:
            reopen(sink)
            found = send(sink, *(wanted[number] for number in left))
            final = {n: each for n, each in zip(left, found, strict=True) if each is not RETRY}
            assert final, "no message has an answer"
            answers |= final
        got = dict.fromkeys(numbers(collect(source, 36)))

    bad = [number for number in range(40) if answers[number].outcome is Outcome.REJECTED]
    assert bad == list(range(3, 40, 10))
    assert {answers[number].rule for number in bad} == {"not-authorised"}
    assert "'t.bad'" in answers[3].reason
    assert list(got) == [number for number in range(40) if number not in bad]


def test_a_refused_key_costs_one_connection_a_minute(
    rabbitmq: Vhost, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = make_sink(writer(rabbitmq, "^t[.]good$"))
    with opened(source_of(rabbitmq.settings), sink):
        assert [each.rule for each in send(sink, say(1, "t.bad"))] == ["not-authorised"]
        reopen(sink)
        answers = send(sink, say(2, "t.bad"), say(3, "t.good"))
        assert [each.rule for each in answers] == ["not-authorised", ""]
        assert send(sink, say(4, "t.good")) == [ACCEPTED]

        writer(rabbitmq, "^t[.](good|bad)$")
        now = monotonic()
        monkeypatch.setattr(rabbitmq_sink, "monotonic", lambda: now + REFUSED_FOR)
        reopen(sink)  # the server looks at the permissions of a key once a channel
        assert send(sink, say(5, "t.bad")) == [ACCEPTED]


@pytest.mark.parametrize(
    ("is_gone", "reason"), [(True, "NOT_FOUND"), (False, "ACCESS_REFUSED")], ids=["gone", "others"]
)
def test_the_state_of_an_exchange_is_the_fault_of_no_message(
    rabbitmq: Vhost, *, is_gone: bool, reason: str
) -> None:
    settings = replace(writer(rabbitmq, ".*"), exchange="own")
    rabbitmq.api("PUT", "exchanges", "/own", {"type": "topic"})
    if not is_gone:
        rights = {"configure": ".*", "write": "^$", "read": ".*"}
        rabbitmq.server.api("PUT", f"permissions/{rabbitmq.name}/{settings.username}", rights)
    with opened(sink := make_sink(settings)):
        if is_gone:
            rabbitmq.api("DELETE", "exchanges", "/own")
        assert send(sink, say(1, "t.x"), say(2, "t.y")) == [RETRY] * 2
        with pytest.raises(NotConnectedError, match=reason):
            sink.send([say(3, "t.x")], Answer())


def test_an_unroutable_message_is_dropped_on_request(rabbitmq: Vhost) -> None:
    sink = make_sink(replace(rabbitmq.settings, on_unroutable="drop"))
    with opened(sink):
        assert send(sink, say(1), say(1)) == [ACCEPTED] * 2

    assert getattr(sink, "counts") == {"unroutable": 2}  # noqa: B009  # only of this sink


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("t.*", "wildcard-in-name"),
        ("#.t", "wildcard-in-name"),
        ("t" * 256, "too-long"),
        ("queue:", "empty-name"),
        ("queue:absent", "unroutable"),
        ("t\udc80", "surrogate"),
    ],
)
def test_an_address_without_a_place_is_refused(rabbitmq: Vhost, address: str, rule: str) -> None:
    sink = make_sink(rabbitmq.settings)
    with opened(sink):
        (wrong,) = send(sink, say(1, address))

    assert (wrong.outcome, wrong.rule) == (Outcome.REJECTED, rule)


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (Message("t.x", b"", Headers(content_type="x" * 256)), "header-bytes"),
        (Message("t.x", b"", Headers(properties={"x" * 256: 1})), "header-bytes"),
        (Message("t.x", b"", Headers(properties={"x": "y" * 200_000})), "header-bytes"),
        (Message("t.x", b"", Headers(properties={"x": 1 << 63})), "property"),
        (Message("t.x", b"", Headers(properties={"x": float("inf")})), "property"),
        (Message("t.x", b"", Headers(properties={"gateway_origin": "a"})), "property-name"),
        (Message("t.x", b"", Headers(properties={"gateway_proof": "a"})), "property-name"),
        (Message("t.x", {"a": 1}), "payload-kind"),
        (Message("t.x", b"x" * 1_001), "message-bytes"),
    ],
)
def test_a_message_that_would_close_the_channel_is_refused(
    rabbitmq: Vhost, message: Message, rule: str
) -> None:
    sink = make_sink(replace(rabbitmq.settings, max_message=1_000))
    with opened(source_of(rabbitmq.settings), sink):
        first, wrong, last = send(sink, say(1), message, say(2))

    assert (first, last) == (ACCEPTED, ACCEPTED)
    assert (wrong.outcome, wrong.rule) == (Outcome.REJECTED, rule)


def test_headers_cross(rabbitmq: Vhost) -> None:
    headers = Headers(
        mode=MODE, priority=7, time=5_000_001, expiry=1 << 60, content_type="a/b",
        correlation_id=b"\0\xff", reply_to="t.back", source_id="id", origin=("a", "b"),
        properties={
            "text": "é", "n": -7, "f": 1.5, "b": b"\0", "bool": True,
            "none": None, "list": [1, "a", [b"x"]], "table": {"a": {"b": False}}, "": "",
            "CC": ["t.cc"], "BCC": "t.bcc", "x-match": "all", "amqp_type": "T",
        },
    )  # fmt: skip
    source, sink = source_of(rabbitmq.settings), make_sink(rabbitmq.settings)
    with opened(source, sink):
        send(sink, Message("t.x", "text", headers))
        (got,) = collect(source, 1)
        assert source.receive(0.2) is None  # CC and BCC route nothing

    assert got == Message("t.x", b"text", headers)


def test_a_queue_as_the_place_of_a_reply_crosses(rabbitmq: Vhost) -> None:
    source, sink = source_of(rabbitmq.settings), make_sink(rabbitmq.settings)
    headers = Headers(mode=MODE, reply_to="queue:amq.gen-1")
    with opened(source, sink), plain_channel(rabbitmq) as channel:
        channel.queue_bind(channel.queue_declare("plain").method.queue, "amq.topic", "t.#")
        send(sink, Message("t.x", b"", headers))
        (got,) = collect(source, 1)
        _, properties, _ = channel.basic_get("plain", auto_ack=True)

    assert (got.headers.reply_to, properties.reply_to) == ("queue:amq.gen-1", "amq.gen-1")


def test_the_properties_of_other_clients_are_read(rabbitmq: Vhost) -> None:
    import pika  # noqa: PLC0415  # the fixture skips without it

    source = source_of(rabbitmq.settings)
    with opened(source), plain_channel(rabbitmq) as channel:
        properties = pika.BasicProperties(
            message_id="same", timestamp=5, priority=200, expiration="60000", app_id="app",
            delivery_mode=1, headers={"n": 1, "l": [b"\xff", None]},
        )  # fmt: skip
        for _ in range(2):
            channel.basic_publish("amq.topic", "t.x", b"1", properties)
        got = collect(source, 2)

    headers = got[0].headers
    assert (headers.mode, headers.source_id) == (DeliveryMode.AT_MOST_ONCE, None)
    assert (headers.time, headers.priority) == (5_000_000, 9)
    assert headers.expiry is not None
    assert headers.properties == {
        "n": 1, "l": [b"\xff", None], "amqp_app_id": "app", "amqp_message_id": "same",
    }  # fmt: skip


def test_the_ids_of_publishers_are_taken_on_request(rabbitmq: Vhost) -> None:
    import pika  # noqa: PLC0415  # the fixture skips without it

    source = source_of(replace(rabbitmq.settings, unique_message_ids=True))
    with opened(source), plain_channel(rabbitmq) as channel:
        channel.basic_publish("amq.topic", "t.x", b"", pika.BasicProperties(message_id="one"))
        (got,) = collect(source, 1)

    assert got.headers.source_id == "one"


def test_a_key_without_utf_8_reaches_the_router_as_a_name_that_it_refuses(rabbitmq: Vhost) -> None:
    source = source_of(rabbitmq.settings)
    with opened(source), plain_channel(rabbitmq) as channel:
        channel.basic_publish("amq.topic", b"t.\xff", b"1")
        channel.basic_publish("amq.topic", "t.x", b"2")
        got = collect(source, 2)

    assert [each.address for each in got] == ["t.\udcff", "t.x"]


def test_bindings_that_are_gone_are_removed(rabbitmq: Vhost) -> None:
    store = SourceMemories(None)
    for patterns in (["a.#", "b.*"], ["b.*", "c"], ["queue:other"]):
        with plain_channel(rabbitmq) as channel:
            channel.queue_declare("other")
        with opened(source_of(rabbitmq.settings, *patterns, store=store)):
            wanted = sorted(each for each in patterns if not each.startswith("queue:"))
            until(lambda: rabbitmq.bindings(QUEUE) == wanted)  # noqa: B023  # called at once


def test_a_binding_that_somebody_removes_is_made_again(
    rabbitmq: Vhost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BIND_INTERVAL", 0.1)
    with opened(source_of(rabbitmq.settings)):
        with plain_channel(rabbitmq) as channel:
            channel.queue_unbind(QUEUE, rabbitmq.settings.exchange, "t.#")
        until(lambda: rabbitmq.bindings(QUEUE) == ["t.#"], "the binding stays away")


def test_an_exchange_that_somebody_removes_is_a_gap(
    rabbitmq: Vhost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BIND_INTERVAL", 0.1)
    source = source_of(replace(rabbitmq.settings, exchange="own", create_exchange=True))
    with opened(source):
        rabbitmq.api("DELETE", "exchanges", "/own")
        wait_for_loss(source)
        (loss,) = source.continuity.take_losses()  # type: ignore[attr-defined]

    assert loss.reason == intake.EXCHANGE_GONE


def test_messages_wait_in_the_queue_while_the_source_is_away(rabbitmq: Vhost) -> None:
    source, sink = source_of(rabbitmq.settings), make_sink(rabbitmq.settings)
    with opened(source):
        assert source.continuity.retention.value == "new"  # type: ignore[attr-defined]
    with opened(sink):
        send(sink, say(1), say(2))
    with opened(source):
        assert source.continuity.retention.value == "kept"  # type: ignore[attr-defined]
        assert numbers(collect(source, 2)) == [1, 2]


def test_a_source_reads_nothing_past_its_window_and_its_connection_stays(rabbitmq: Vhost) -> None:
    """Prefetch counts messages; beyond the bytes nothing is read, for more than two heartbeats."""
    size, window = 200_000, 1_000_000
    settings = replace(rabbitmq.settings, receive_window_bytes=window, heartbeat=1)
    source, sink = source_of(settings), make_sink(rabbitmq.settings)
    with opened(source, sink):
        for number in range(40):
            payload = str(number).encode().ljust(size)
            assert send(sink, Message("t.x", payload, Headers(mode=MODE))) == [ACCEPTED]
        held = hold(source, 5)
        while (more := source.receive(3.5)) is not None:
            held.append(more)
        assert source._intake.queue.held < window + 2 * size  # type: ignore[attr-defined]  # noqa: SLF001  # as above
        got = [each for batch in held for each in batch.messages]
        for batch in held:
            batch.settle([ACCEPTED] * len(batch.messages))
        got += collect(source, 40 - len(got))

    assert [int(bytes(each.payload)) for each in got] == list(range(40))  # type: ignore[arg-type]  # bytes were sent
    assert not any(each.headers.redelivered for each in got)


def test_what_has_no_room_for_long_comes_again_in_its_order_and_once(
    rabbitmq: Vhost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PATIENCE", 0.1)
    size, window = 200_000, 1_000_000
    source = source_of(replace(rabbitmq.settings, receive_window_bytes=window))
    with opened(source):
        pass  # its queue is there
    with opened(sink := make_sink(rabbitmq.settings)):
        for number in range(40):
            payload = str(number).encode().ljust(size)
            assert send(sink, Message("t.x", payload, Headers(mode=MODE))) == [ACCEPTED]
    got: list[Message] = []
    with opened(source):
        held = hold(source, 5)
        until(lambda: source._intake._connection.skipping)  # type: ignore[attr-defined]  # noqa: SLF001  # as above
        while (more := source.receive(QUIET)) is not None:
            held.append(more)
        assert source._intake.queue.held < window + 2 * size  # type: ignore[attr-defined]  # noqa: SLF001
        for batch in held:
            got += batch.messages
            batch.settle([ACCEPTED] * len(batch.messages))
        wait_for_loss(source)
        reopen(source)
        got += collect(source, 40 - len(got))

    assert [int(bytes(each.payload)) for each in got] == list(range(40))  # type: ignore[arg-type]  # bytes were sent
    assert got[-1].headers.redelivered


def test_a_message_past_the_limit_comes_without_its_payload_and_goes_to_the_dead_letter_exchange(
    rabbitmq: Vhost,
) -> None:
    source = source_of(replace(rabbitmq.settings, max_message_in=1_000), "queue:long")
    with plain_channel(rabbitmq) as channel:
        channel.queue_declare("rest")
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "rest"}
        channel.queue_declare("long", durable=True, arguments=arguments)
        for size in (1, 500_000, 1_000, 1_001, 2):
            channel.basic_publish("", "long", b"1" * size)
        with opened(source):
            got = collect(source, 5)
        kept = [len(each.payload) for each in got]
        full = [each.payload.full for each in got if isinstance(each.payload, DroppedPayload)]
        assert (kept, full) == ([1, 0, 1_000, 0, 2], [500_000, 1_001])
        assert not channel.queue_declare("long", passive=True).method.message_count
        rest = [channel.basic_get("rest", auto_ack=True)[2] for _ in range(3)]
        assert [each and len(each) for each in rest] == [500_000, 1_001, None]


def test_a_queue_is_sent_to_and_read_by_its_name(rabbitmq: Vhost) -> None:
    with plain_channel(rabbitmq) as channel:
        channel.queue_declare("work", durable=True)
        channel.queue_bind("work", "amq.topic", "t.#")
    source, sink = source_of(rabbitmq.settings, "queue:work"), make_sink(rabbitmq.settings)
    with opened(source, sink):
        assert send(sink, say(1, "queue:work"), say(2)) == [ACCEPTED] * 2
        got = collect(source, 2)

    assert [each.address for each in got] == ["queue:work"] * 2
    assert [each.headers.properties["amqp_routing_key"] for each in got] == ["work", "t.x"]


def test_an_absent_queue_is_waited_for(rabbitmq: Vhost) -> None:
    source = source_of(rabbitmq.settings, "queue:later")
    with pytest.raises(NotConnectedError, match="no queue 'later'"):
        source.open()
    with plain_channel(rabbitmq) as channel:
        channel.queue_declare("later")
    with opened(source):
        pass


def test_a_full_queue_has_no_room(rabbitmq: Vhost) -> None:
    arguments = {"x-max-length": 2, "x-overflow": "reject-publish"}
    with plain_channel(rabbitmq) as channel:
        channel.queue_declare("full", durable=True, arguments=arguments)
    sink = make_sink(rabbitmq.settings)
    with opened(sink):
        answers = send(sink, *(say(number, "queue:full") for number in range(5)))

    assert answers == [ACCEPTED] * 2 + [NO_ROOM] * 3


def test_a_full_queue_beside_another_gives_that_one_few_copies(rabbitmq: Vhost) -> None:
    """The server copies a message to both queues before the full one refuses it."""
    messages, sink = 100, make_sink(rabbitmq.settings)
    with plain_channel(rabbitmq) as channel:
        arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        channel.queue_declare("full", durable=True, arguments=arguments)
        channel.queue_declare("beside", durable=True)
        for queue in ("full", "beside"):
            channel.queue_bind(queue, "amq.topic", "t.#")
    state = EndpointState("target", "sink")
    lane = Lane(SinkBinding(sink, "rabbitmq", frozenset(), LaneLimits((0.05, 0.1))), state)
    lane.start()
    until(lambda: lane.direct)
    lane.deliver(batch_of([say(number) for number in range(messages)]))
    until(lambda: state.reconnects >= 5)
    lane.stop()

    with plain_channel(rabbitmq) as channel:
        copies = channel.queue_declare("beside", passive=True).method.message_count
    assert messages <= copies <= messages + state.reconnects + 1


def test_a_memory_alarm_is_no_room_and_no_break(rabbitmq: Vhost) -> None:
    source, sink = source_of(rabbitmq.settings), make_sink(rabbitmq.settings)
    with opened(source, sink):
        rabbitmq.server.ctl("set_vm_memory_high_watermark", "0.0001")
        late = Answer()
        try:
            sink.send([say(1)], late)  # the server blocks a connection when it publishes
            until(lambda: send(sink, say(2)) == [NO_ROOM] if late.has_come else is_blocked(sink))
            assert send(sink, say(2)) == [NO_ROOM]
        finally:
            rabbitmq.server.ctl("set_vm_memory_high_watermark", "0.4")
        assert late.wait() == [ACCEPTED]
        until(lambda: send(sink, say(3)) == [ACCEPTED])

        assert numbers(collect(source, 2)) == [1, 3]


def is_blocked(sink: Any) -> bool:  # noqa: ANN401  # a part of this sink
    connection = sink._connection  # noqa: SLF001  # nothing else says it without a send
    return connection is not None and connection.blocked


def test_a_deleted_queue_is_a_gap(rabbitmq: Vhost) -> None:
    source = source_of(rabbitmq.settings)
    with opened(source):
        rabbitmq.delete_queue(QUEUE)
        wait_for_loss(source)
        losses = source.continuity.take_losses()  # type: ignore[attr-defined]
        reopen(source)

        assert "was deleted" in losses[0].reason
        assert source.continuity.retention.value == "new"  # type: ignore[attr-defined]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("classic", RabbitmqServer.kill),
        ("quorum", RabbitmqServer.stop),
    ],
)  # a quorum queue of Debian's 3.10.8 with messages elects no leader after a kill
def test_an_ended_server_loses_nothing_and_keeps_the_order(
    rabbitmq: Vhost, kind: str, end: Callable[[RabbitmqServer], None]
) -> None:
    settings = replace(rabbitmq.settings, queue_type=kind)
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        assert send(sink, *(say(number) for number in range(50))) == [ACCEPTED] * 50
        hold(source, 50)
        end(rabbitmq.server)
        wait_for_loss(source)
        rabbitmq.server.start()
        reopen(sink)
        reopen(source)
        until(lambda: send(sink, say(50)) != [RETRY])
        got = collect(source, 51)

    assert numbers(got)[:51] == list(range(51))
    assert got[0].headers.redelivered


def test_a_stream_is_read_on_from_its_position_with_offsets_as_identities(
    rabbitmq: Vhost,
) -> None:
    settings, store = replace(rabbitmq.settings, queue_type="stream"), SourceMemories(None)
    source, sink = source_of(settings, store=store), make_sink(settings)
    with opened(source, sink):
        send(sink, *(say(number) for number in range(4)))
        first = hold(source, 4)
        identities = [each for batch in first for each in batch.identities]
        for batch in first:
            batch.settle([ACCEPTED if each.payload != b"3" else RETRY for each in batch.messages])
    source = source_of(settings, store=store)
    with opened(source):
        batch = receive(source)

    assert numbers(list(batch.messages)) == [3]
    assert batch.identities == [identities[3]]
    assert len({*identities}) == 4


def test_a_killed_process_repeats_only_what_was_unsettled_and_marks_it(rabbitmq: Vhost) -> None:
    settings, store = replace(rabbitmq.settings, queue_type="stream"), SourceMemories(None)
    killed, sink = source_of(settings, store=store), make_sink(settings)
    with opened(sink):
        killed.open()
        send(sink, *(say(number) for number in range(10)))
        collect(killed, 10)
        until(lambda: killed.receive(QUIET) is None and settled_in(store) == 9)
        send(sink, *(say(number) for number in range(10, 20)))
        hold(killed, 10)
        after = source_of(settings, store=copy_of(store))
        with opened(after):
            again = collect(after, 10)
            send(sink, *(say(20 + number) for number in range(settings.receive_window + 1)))
            new = collect(after, settings.receive_window + 1)
    killed.close()

    assert numbers(again) == list(range(10, 20))
    assert all(each.headers.redelivered for each in again)
    assert not new[-1].headers.redelivered, "only a window is marked without need"


def test_a_stream_with_chunks_of_many_messages_is_read_once(rabbitmq: Vhost) -> None:
    """Publishers without confirms make such chunks; 4.0 sends a part of one."""
    settings, store = replace(rabbitmq.settings, queue_type="stream"), SourceMemories(None)
    counts: list[int] = []
    for run in range(3):
        source = source_of(settings, store=store)
        with opened(source):
            with plain_channel(rabbitmq) as channel:
                for number in range(300):
                    channel.basic_publish(
                        settings.exchange, "t.x", f"{300 * run + number}".encode()
                    )
            got = numbers(collect(source, 300))
            assert source.receive(QUIET) is None
        counts.append(len(got))
        assert got == list(range(300 * run, 300 * run + 300))

    assert counts == [300, 300, 300]


def test_a_chunk_of_a_stream_may_be_larger_than_the_window(rabbitmq: Vhost) -> None:
    """A server of 3.x sends a chunk whole; the rest of it is not more than was asked for."""
    source = source_of(replace(rabbitmq.settings, queue_type="stream", receive_window=10))
    with opened(source):
        with plain_channel(rabbitmq) as channel:
            for number in range(300):
                channel.basic_publish(rabbitmq.settings.exchange, "t.x", f"{number}".encode())

        assert numbers(collect(source, 300)) == list(range(300))


def settled_in(store: SourceMemories) -> int:
    """The offset of the last settled message in the memory."""
    found = (store.load(ROLE) or {}).get(f"stream {QUEUE}", ["", -1, -1])
    return int(found[1])


def copy_of(store: SourceMemories) -> SourceMemories:
    """Return what another process reads while the first one still changes its own."""
    found = SourceMemories(None)
    found.save(ROLE, dict(store.load(ROLE) or {}))
    return found


@pytest.mark.parametrize("stops", [1, 5])
def test_closing_before_a_waiting_reader_keeps_order_and_loses_nothing(
    rabbitmq: Vhost, stops: int
) -> None:
    """The library's own close cancels the consumer: the other reader then gets newer messages."""
    settings, count = replace(rabbitmq.settings, receive_window=50), 1_000
    sink, got = make_sink(settings), list[int]()
    first, other = source_of(settings), source_of(settings)
    with opened(sink, first, other):
        send(sink, *(say(number) for number in range(count)))
        holder, waiting = other, first
        for stop in range(stops):
            holder, waiting = waiting, holder
            got += numbers(collect(holder, 20))
            hold(holder, 10)
            holder.close()
            if stop < stops - 1:
                holder.open()
        got += numbers(collect(waiting, count - len(got)))

    assert got == list(range(count))


@pytest.mark.parametrize("waiting", [0, 2, 9])  # fewer messages than before, and more
@pytest.mark.parametrize("restarts", [False, True])
def test_a_stream_that_was_made_again_is_read_from_its_first_message(
    rabbitmq: Vhost, restarts: bool, waiting: int
) -> None:
    """Its offsets begin at 0 again: a source that waits for its old place would not read them."""
    settings = replace(rabbitmq.settings, queue_type="stream", start="next", answer_timeout=2.0)
    store = SourceMemories(None)
    source, sink = source_of(settings, store=store), make_sink(settings)
    with opened(source, sink):
        send(sink, *(say(number) for number in range(6)))
        old = hold(source, 6)
        for batch in old:
            batch.settle([ACCEPTED] * len(batch.messages))
    with plain_channel(rabbitmq) as channel:
        channel.queue_delete(QUEUE)
        channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_bind(QUEUE, settings.exchange, "t.#")
    with opened(sink):
        send(sink, *(say(6 + number) for number in range(waiting)))
    if restarts:
        source = source_of(settings, store=store)
    with opened(source, sink):
        (loss,) = source.continuity.take_losses()  # type: ignore[attr-defined]
        send(sink, *(say(6 + number) for number in range(waiting, 3)))
        new = hold(source, max(waiting, 3))

    assert loss.messages is None
    got = [number for batch in new for number in numbers(list(batch.messages))]
    assert got == list(range(6, 6 + max(waiting, 3)))
    before = {each for batch in old for each in batch.identities}
    assert before.isdisjoint(each for batch in new for each in batch.identities)


@pytest.mark.parametrize("pattern", ["t.#", f"queue:{QUEUE}"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_queue_that_turns_out_to_be_a_stream_is_read_on(
    rabbitmq: Vhost, pattern: str, restarts: bool
) -> None:
    """Its owner has made it; without a place the server begins behind its last message."""
    with plain_channel(rabbitmq) as channel:
        channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_bind(QUEUE, rabbitmq.settings.exchange, "t.#")
    store = SourceMemories(None)
    source, sink = source_of(rabbitmq.settings, pattern, store=store), make_sink(rabbitmq.settings)
    with opened(source, sink):
        send(sink, say(0), say(1))
        first = collect(source, 2)
    with opened(sink):
        send(sink, say(2), say(3))
    if restarts:
        source = source_of(rabbitmq.settings, pattern, store=store)
    with opened(source, sink):
        send(sink, say(4))
        got = collect(source, 3)

    assert numbers(first + got) == [0, 1, 2, 3, 4]


def test_a_queue_that_becomes_a_stream_is_read_from_its_first_message(rabbitmq: Vhost) -> None:
    store = SourceMemories(None)
    source, sink = source_of(rabbitmq.settings, store=store), make_sink(rabbitmq.settings)
    with opened(source, sink):
        send(sink, say(0))
        collect(source, 1)
    with plain_channel(rabbitmq) as channel:
        channel.queue_delete(QUEUE)
        channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_bind(QUEUE, rabbitmq.settings.exchange, "t.#")
    with opened(sink):
        send(sink, say(1))
        reopen(source)
        send(sink, say(2))
        wait_for_loss(source)
        reopen(source)
        assert numbers(collect(source, 2)) == [1, 2]
    source.close()


@pytest.mark.parametrize("kind", ["classic", "stream"])
def test_an_offset_of_another_stream_in_a_header_ends_no_source_and_moves_no_place(
    rabbitmq: Vhost, kind: str
) -> None:
    """A shovel copies the header with a message of a stream."""
    import pika  # noqa: PLC0415  # the fixture skips without it

    settings, store = replace(rabbitmq.settings, queue_type=kind), SourceMemories(None)
    source, sink = source_of(settings, store=store), make_sink(settings)
    properties = pika.BasicProperties(headers={"x-stream-offset": 9_000})
    got: list[Message] = []
    for number in range(3):
        with opened(source):
            with plain_channel(rabbitmq) as channel:
                channel.basic_publish(settings.exchange, "t.x", f"{number}".encode(), properties)
            while numbers(got)[-1:] != [number]:
                with suppress(NotConnectedError):
                    got += collect(source, 1)
                    continue
                reopen(source)
        source = source_of(settings, store=store)
    with opened(sink, source):
        send(sink, say(3))
        got += collect(source, 1)

    assert numbers(got) == [0, 1, 2, 3]


def test_a_source_with_a_damaged_memory_marks_what_a_stream_has(
    rabbitmq: Vhost, tmp_path: Path
) -> None:
    settings, file = replace(rabbitmq.settings, queue_type="stream"), tmp_path / "sessions"
    source, sink = source_of(settings, store=memories_in(file)), make_sink(settings)
    with opened(source, sink):
        send(sink, say(1), say(2))
        collect(source, 2)
    file.write_text(file.read_text().replace('"crc32": ', '"crc32": 1'))
    source = source_of(settings, store=memories_in(file))
    with opened(source, sink):
        send(sink, say(3))
        got = collect(source, 3)

    assert numbers(got) == [1, 2, 3]
    assert [each.headers.redelivered for each in got][:2] == [True, True]


def test_damaged_bindings_stop_no_source(rabbitmq: Vhost) -> None:
    store = SourceMemories(None)
    store.save(ROLE, {f"bindings {QUEUE}": ["[1]"]})
    source = source_of(rabbitmq.settings, store=store)
    sink = make_sink(rabbitmq.settings)
    with opened(source, sink):
        send(sink, say(1))
        assert numbers(collect(source, 1)) == [1]


def test_messages_that_a_stream_removed_unread_are_a_gap(rabbitmq: Vhost) -> None:
    arguments = {
        "x-queue-type": "stream", "x-max-length-bytes": 20_000,
        "x-stream-max-segment-size-bytes": 10_000,
    }  # fmt: skip
    with plain_channel(rabbitmq) as channel:
        channel.queue_declare(QUEUE, durable=True, arguments=arguments)
    settings, store = replace(rabbitmq.settings, queue_type="stream"), SourceMemories(None)
    source, sink = source_of(settings, store=store), make_sink(settings)
    with opened(source, sink):
        send(sink, say(0))
        collect(source, 1)
    with opened(sink):
        for number in range(1, 40):
            payload = f"{number} ".encode() + b" " * 3_000
            send(sink, Message("t.x", payload, Headers(mode=MODE)))
    with opened(source):
        got = collect(source, 1)
        (loss,) = source.continuity.take_losses()  # type: ignore[attr-defined]

    assert loss.messages is None  # entries of the server itself have offsets, too
    assert numbers(got)[0] > 1


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"password": "wrong"}, "ACCESS_REFUSED"),
        ({"exchange": "absent"}, "no exchange 'absent'"),
        ({"exchange": "amq.direct"}, "no topic exchange"),
    ],
)
def test_a_refusal_for_good_is_told_from_a_lost_server(
    rabbitmq: Vhost, changed: dict[str, Any], text: str
) -> None:
    source = source_of(replace(rabbitmq.settings, **changed))
    with pytest.raises(EndpointError, match=text) as caught:
        source.open()

    assert not caught.value.retryable


def test_the_username_of_the_address_takes_the_password_of_the_settings(rabbitmq: Vhost) -> None:
    user = writer(rabbitmq, ".*").username
    url = rabbitmq.url.replace("guest:guest@", f"{user}@")
    assert f"{user}@" in url
    with opened(source_of(replace(rabbitmq.settings, url=url, username=None, password=user))):
        pass


def test_an_absent_vhost_is_refused(rabbitmq: Vhost) -> None:
    source = source_of(replace(rabbitmq.settings, url=rabbitmq.url + "-absent"))
    with pytest.raises(EndpointError, match="vhost") as caught:
        source.open()

    assert not caught.value.retryable


def test_the_exchange_is_created_on_request(rabbitmq: Vhost) -> None:
    settings = replace(rabbitmq.settings, exchange="plant", create_exchange=True)
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, say(1))
        assert numbers(collect(source, 1)) == [1]


@pytest.mark.parametrize(
    ("method", "kind", "body"),
    [
        ("queue_declare", f"queues/{{vhost}}/{QUEUE}", {"arguments": {"x-max-length": 9}}),
        ("exchange_declare", "exchanges/{vhost}/plant", {"type": "topic", "durable": False}),
    ],
)
def test_what_another_connection_makes_meanwhile_is_used(
    rabbitmq: Vhost, monkeypatch: pytest.MonkeyPatch, method: str, kind: str, body: dict[str, Any]
) -> None:
    """The look-up finds none, and the making of one with other arguments is refused."""
    from pika.channel import Channel  # noqa: PLC0415  # the fixture skips without it

    declare = getattr(Channel, method)

    def lose(channel: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  # the driver's
        if not options.get("passive"):
            monkeypatch.setattr(Channel, method, declare)
            rabbitmq.server.api("PUT", kind.format(vhost=rabbitmq.name), {"durable": True, **body})
        return declare(channel, *arguments, **options)

    monkeypatch.setattr(Channel, method, lose)
    settings = replace(rabbitmq.settings, exchange="plant", create_exchange=True)
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        assert getattr(Channel, method) is declare
        send(sink, say(1))
        assert numbers(collect(source, 1)) == [1]


def test_the_next_address_is_tried(rabbitmq: Vhost) -> None:
    settings = replace(rabbitmq.settings, url=f"amqp://127.0.0.1:{free_port()}, {rabbitmq.url}")
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        assert send(sink, say(1)) == [ACCEPTED]
        assert numbers(collect(source, 1)) == [1]
        in_use = urlsplit(rabbitmq.url).netloc.rpartition("@")[2]
        assert address_of(source) == address_of(sink) == in_use


def test_faults_of_settings() -> None:
    wrong = RabbitmqSettings(url="http://x", exchange="", queue="amq.q")

    assert [fault.key for fault in wrong.faults()] == ["url", "exchange", "queue"]


def test_an_address_without_its_log_in() -> None:
    settings = RabbitmqSettings(url="amqp://u:secret@b:1/v%2Fx,amqps://u:secret@a")

    assert settings.addresses == ("amqp://b:1", "amqps://a")
    assert settings.broker_key == "amqp://a:5671,b:1/v/x"
