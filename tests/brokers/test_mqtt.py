"""MQTT over a real mosquitto: fields, refusals and guarantees of the two versions."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from time import monotonic, time_ns

import pytest

from gateway.dialects.base import parse_subject
from gateway.dialects.brokers import BROKERS, with_limits
from gateway.dialects.name_limits import NameLimits
from gateway.dialects.systems.mqtt import MQTT
from gateway.endpoints.base import Subscription
from gateway.endpoints.continuity import ReportsContinuity
from gateway.endpoints.mqtt.connection import MqttConnection
from gateway.endpoints.mqtt.kept_session import KeptSession
from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.endpoints.mqtt.receive_state import ReceiveState
from gateway.endpoints.mqtt.session import BrokerLimits
from gateway.endpoints.mqtt.wanted import subscription_options
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, NotConnectedError, TranslationError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome
from gateway.translate.names import Renderer
from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.endpoints.exchange import QUIET, collect, hold, opened, receive, send
from tests.memories import remember

pytestmark = pytest.mark.broker

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
VERSIONS = pytest.mark.parametrize("version", ["3.1.1", "5"])


def mqtt(broker: Mosquitto) -> MqttSettings:
    return MqttSettings(name="m", host="127.0.0.1", port=broker.port)


@VERSIONS
def test_a_wrong_password_is_reported_at_once(
    start_mosquitto: StartMosquitto, tmp_path: Path, version: str
) -> None:
    users = tmp_path / "users"
    subprocess.run(  # noqa: S603
        ["mosquitto_passwd", "-b", "-c", str(users), "jane", "right"],  # noqa: S607
        check=True,
    )
    broker = start_mosquitto("allow_anonymous false", f"password_file {users}")
    good = replace(mqtt(broker), username="jane", password="right", version=version)  # noqa: S106
    started = monotonic()

    for wrong in (replace(good, password="wrong"), replace(good, username=None)):  # noqa: S106
        with pytest.raises(EndpointError, match="check the credentials") as caught:
            make_sink(wrong).open()
        assert not caught.value.retryable
        assert "wrong" not in str(caught.value)
    assert monotonic() - started < good.connect_timeout

    with opened(make_sink(good)):
        pass


def test_an_unreachable_broker_is_a_temporary_error() -> None:
    with pytest.raises(NotConnectedError, match="cannot connect"):
        make_sink(MqttSettings(host="127.0.0.1", port=free_port())).open()


def test_an_illegal_filter_is_named(mosquitto: Mosquitto) -> None:
    with pytest.raises(EndpointError, match="'a/#/b'") as caught:
        make_source(mqtt(mosquitto), [Subscription("a/#/b")]).open()

    assert not caught.value.retryable


@pytest.mark.parametrize("qos", [0, 1, 2])
@VERSIONS
def test_messages_of_every_qos_arrive_once_and_in_order(
    mosquitto: Mosquitto, version: str, qos: int
) -> None:
    settings = replace(mqtt(mosquitto), version=version, qos=qos)
    source, sink = make_source(settings, [Subscription("#")]), make_sink(settings)
    headers = Headers(mode=DeliveryMode(qos))
    with opened(source, sink):
        messages = [Message(f"t/{i}", str(i).encode(), headers) for i in range(3_000)]
        for start in range(0, 3_000, 500):
            assert send(sink, *messages[start : start + 500]) == [ACCEPTED] * 500
        got = collect(source, 3_000)

        assert source.receive(QUIET) is None
    assert got == messages


def test_qos_is_lowered_to_what_the_settings_allow(mosquitto: Mosquitto) -> None:
    settings = replace(mqtt(mosquitto), qos=1)
    source = make_source(replace(settings, qos=2), [Subscription("#")])
    sink = make_sink(settings)
    with opened(source, sink):
        send(sink, Message("t", b"", Headers(mode=DeliveryMode.EXACTLY_ONCE)))

        assert collect(source, 1)[0].headers.mode is DeliveryMode.AT_LEAST_ONCE


def test_version_5_carries_every_header(mosquitto: Mosquitto) -> None:
    source = make_source(mqtt(mosquitto), [Subscription("#")])
    sink = make_sink(mqtt(mosquitto))
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE,
        priority=7,
        time=1_700_000_000_123_456,
        content_type="application/json",
        correlation_id=b"\0\xff",
        reply_to="answers/here",
        source_id="ID:4711",
        origin=("north", "south"),
        properties={
            "text": "ü 5",
            "many": ["a", "b", "a"],
            "int": -5,
            "float": 0.1,
            "yes": True,
            "nothing": None,
            "raw": b"\0\xfe",
            "tree": {"a": [1, {"b": None}]},
        },
    )
    with opened(source, sink):
        send(sink, Message("t", "text ü", headers), Message("t", b"{}", headers))

        assert collect(source, 2) == [Message("t", "text ü", headers), Message("t", b"{}", headers)]


def test_version_3_carries_the_fields_of_its_settings(mosquitto: Mosquitto) -> None:
    settings = replace(mqtt(mosquitto), version="3.1.1")
    source, sink = make_source(settings, [Subscription("#")]), make_sink(settings)
    with opened(source, sink):
        send(sink, Message("t", b"", replace(ONCE, content_type="x", properties={"a": 1})))
        (got,) = collect(source, 1)

    assert got.headers == ONCE
    assert settings.carries == {"mode", "retained"}


def test_expiry_is_kept_through_the_broker(mosquitto: Mosquitto) -> None:
    source = make_source(mqtt(mosquitto), [Subscription("#")])
    sink = make_sink(mqtt(mosquitto))
    now = time_ns() // 1_000
    later = now + 100 * 1_000_000
    with opened(source, sink):
        good, late = send(
            sink,
            Message("t", b"good", replace(ONCE, expiry=later)),
            Message("t", b"late", replace(ONCE, expiry=now)),
        )
        (got,) = collect(source, 1)

    assert good == ACCEPTED
    assert (late.outcome, late.rule) == (Outcome.REJECTED, "expired")
    assert got.headers.expiry is not None
    assert abs(got.headers.expiry - later) < 20 * 1_000_000


@pytest.mark.parametrize(
    ("no_local", "expected"), [(True, [b"other"]), (False, [b"own", b"other"])]
)
def test_no_local_leaves_out_messages_of_the_same_connection(
    mosquitto: Mosquitto, no_local: bool, expected: list[bytes]
) -> None:
    settings = replace(mqtt(mosquitto), no_local=no_local)
    subscription = Subscription("t")
    state = ReceiveState(settings, [subscription], KeptSession())
    connection = MqttConnection(settings, "talks-to-itself", clean=True, owner=state)
    state.connection = connection
    connection.open(lambda _present: [("t", subscription_options(settings, subscription))])
    sink = make_sink(settings)
    own = PublishEncoder(settings, BrokerLimits())
    own.add(Message("t", b"own"), 0)
    try:
        connection.write(*own.take())
        with opened(sink):
            send(sink, Message("t", b"other"))
        got: list[object] = []
        while b"other" not in got:
            batch = state.queue.take(10, 5)
            assert batch is not None
            got.extend(m.payload for m in batch.messages)
    finally:
        connection.close()

    assert got == expected


@VERSIONS
def test_live_messages_keep_the_retained_flag_only_in_version_5(
    mosquitto: Mosquitto, version: str
) -> None:
    settings = replace(mqtt(mosquitto), version=version)
    source = make_source(settings, [Subscription("t", exclude_retained=True)])
    sink = make_sink(settings)
    with opened(source, sink):
        send(sink, Message("t", b"live", replace(ONCE, retained=True)))
        (got,) = collect(source, 1)

    assert got.payload == b"live"
    assert got.headers.retained is (version == "5")


@VERSIONS
def test_retained_messages_are_not_sent_again_with_a_kept_session(
    mosquitto: Mosquitto, version: str
) -> None:
    settings = replace(mqtt(mosquitto), version=version)
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    with opened(sink):
        send(sink, Message("t", b"kept", replace(ONCE, retained=True)))
        with opened(source):
            assert len(collect(source, 1)) == 1
        with opened(source):
            assert source.receive(QUIET) is None


@VERSIONS
def test_one_subscription_may_include_retained_messages_and_another_not(
    mosquitto: Mosquitto, version: str
) -> None:
    settings = replace(mqtt(mosquitto), version=version)
    subscriptions = [Subscription("a/+", exclude_retained=True), Subscription("b/+")]
    source, sink = make_source(settings, subscriptions), make_sink(settings)
    with opened(sink):
        send(
            sink,
            Message("a/x", b"unwanted", replace(ONCE, retained=True)),
            Message("b/x", b"wanted", replace(ONCE, retained=True)),
        )
        with opened(source):
            send(sink, Message("a/y", b"last", ONCE))
            got = collect(source, 2)

    assert sorted(bytes(m.payload) for m in got if isinstance(m.payload, bytes)) == [
        b"last",
        b"wanted",
    ]


def test_a_kept_session_delivers_messages_sent_while_the_source_was_away(
    mosquitto: Mosquitto,
) -> None:
    source = make_source(mqtt(mosquitto), [Subscription("t")])
    sink = make_sink(mqtt(mosquitto))
    with opened(sink):
        with opened(source):
            pass
        send(sink, Message("t", b"meanwhile", ONCE))
        with opened(source):
            assert collect(source, 1)[0].payload == b"meanwhile"


@pytest.mark.parametrize(
    "earlier", [(Subscription("t", marks_retained=True), "5"), (Subscription("t"), "3.1.1")]
)
def test_changed_options_of_a_kept_subscription_hold(
    mosquitto: Mosquitto, tmp_path: Path, earlier: tuple[Subscription, str]
) -> None:
    """mosquitto 2.0.11 keeps the options of a subscription that a session repeats."""
    (subscription, version), settings = earlier, replace(mqtt(mosquitto), client_id="options")
    source = make_source(replace(settings, version=version), [subscription])
    changed, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    remember(source, tmp_path / "memory")
    with opened(sink):
        with opened(source):
            send(sink, Message("t", b"live", replace(ONCE, retained=True)))
            (before,) = collect(source, 1)
        send(sink, Message("t", b"queued", replace(ONCE, retained=True)))
        remember(changed, tmp_path / "memory")
        with opened(changed):
            send(sink, Message("t", b"live", replace(ONCE, retained=True)))
            got = collect(changed, 2)
            assert isinstance(changed, ReportsContinuity)
            (loss,) = changed.continuity.take_losses()
        with opened(changed):
            assert not changed.continuity.take_losses()

    assert not before.headers.retained
    assert [(m.payload, m.headers.retained) for m in got] == [(b"queued", False), (b"live", True)]
    assert "'t'" in loss.reason


def test_a_clean_session_keeps_nothing(mosquitto: Mosquitto) -> None:
    settings = replace(mqtt(mosquitto), session_expiry=0)
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    with opened(sink):
        with opened(source):
            pass
        send(sink, Message("t", b"meanwhile", ONCE))
        with opened(source):
            assert source.receive(QUIET) is None


def test_a_message_without_permission_is_rejected(
    start_mosquitto: StartMosquitto, tmp_path: Path
) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite ours/#\n")
    broker = start_mosquitto("allow_anonymous true", f"acl_file {rules}")
    sink = make_sink(mqtt(broker))
    with opened(sink):
        good, bad = send(sink, Message("ours/x", b"", ONCE), Message("theirs/x", b"", ONCE))

    assert good == ACCEPTED
    assert (bad.outcome, bad.rule) == (Outcome.REJECTED, "not-authorised")


@pytest.mark.parametrize("name", ["$CONTROL/x", "$share/x"])
def test_the_broker_accepts_and_drops_a_name_that_the_dialect_refuses(
    mosquitto: Mosquitto, name: str
) -> None:
    settings = replace(mqtt(mosquitto), version="3.1.1")
    source = make_source(settings, [Subscription("#"), Subscription("$CONTROL/#")])
    with opened(source):
        for address in (name, "last"):  # mosquitto closes the connection behind a `$share`
            sink = make_sink(settings)
            with opened(sink):
                assert send(sink, Message(address, b"", ONCE)) == [ACCEPTED]
        assert [each.address for each in collect(source, 1)] == ["last"]

    with pytest.raises(TranslationError, match="belong to the broker"):
        Renderer(with_limits(MQTT, NameLimits())).render(parse_subject(name, MQTT))


def test_mosquitto_takes_as_many_levels_as_its_known_limit_says(mosquitto: Mosquitto) -> None:
    most = BROKERS["mosquitto"].limits.levels
    assert most
    sink = make_sink(mqtt(mosquitto))
    with opened(sink):
        assert send(sink, Message("/".join("a" * most), b"", ONCE)) == [ACCEPTED]
        assert send(sink, Message("/".join("a" * (most + 1)), b"", ONCE)) == [RETRY]


def test_a_packet_over_the_limit_is_rejected_and_not_sent(
    start_mosquitto: StartMosquitto,
) -> None:
    broker = start_mosquitto("allow_anonymous true", "max_packet_size 1000")
    sink = make_sink(mqtt(broker))
    with opened(sink):
        big, small = send(sink, Message("t", b"x" * 1_000, ONCE), Message("t", b"x", ONCE))

    assert (big.outcome, big.rule) == (Outcome.REJECTED, "packet-size")
    assert "limit 1000" in big.reason
    assert small == ACCEPTED


def test_the_receive_maximum_of_the_broker_is_respected(start_mosquitto: StartMosquitto) -> None:
    broker = start_mosquitto("allow_anonymous true", "max_inflight_messages 3")
    source = make_source(mqtt(broker), [Subscription("t")])
    sink = make_sink(mqtt(broker))
    with opened(source, sink):
        messages = [Message("t", str(i).encode(), ONCE) for i in range(500)]

        assert send(sink, *messages) == [ACCEPTED] * 500
        assert collect(source, 500) == messages


def test_a_qos_2_message_is_acknowledged_after_it_is_settled(mosquitto: Mosquitto) -> None:
    settings = replace(mqtt(mosquitto), qos=2)
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    exactly = Headers(mode=DeliveryMode.EXACTLY_ONCE)
    with opened(sink):
        with opened(source):
            send(sink, Message("t", b"1", exactly), Message("t", b"2", exactly))
            hold(source, 2)
        with opened(source):
            first = collect(source, 2)
        with opened(source):
            assert source.receive(QUIET) is None

    assert [m.payload for m in first] == [b"1", b"2"]


def test_a_retried_message_holds_back_the_acknowledgement_of_later_ones(
    mosquitto: Mosquitto,
) -> None:
    source = make_source(mqtt(mosquitto), [Subscription("t")])
    sink = make_sink(mqtt(mosquitto))
    with opened(sink):
        with opened(source):
            send(sink, Message("t", b"1", ONCE))
            receive(source).settle([RETRY])
            send(sink, Message("t", b"2", ONCE))
            hold(source, 1)[0].settle([RETRY])
            collect(source, 0)
        with opened(source):
            got = collect(source, 2)

    assert [m.payload for m in got] == [b"1", b"2"]
