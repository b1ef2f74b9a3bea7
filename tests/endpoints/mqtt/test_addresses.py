"""Several addresses of one MQTT endpoint, at two real brokers: the next one, and the way back."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.continuity import Retention
from gateway.endpoints.mqtt import addresses, connection_errors, open_sink, open_source
from gateway.endpoints.mqtt.addresses import Addresses
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import (
    EndpointError,
    LeftError,
    NotConnectedError,
    SubscriptionRefusedError,
)
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.wire import Wire
from tests.endpoints.exchange import (
    Answer,
    collect,
    hold,
    opened,
    receive,
    reopen,
    send,
    wait_for_loss,
)
from tests.endpoints.mqtt.peer import WELCOME, Peer, grant, peer
from tests.waiting import PATIENCE, until

__all__ = ["peer"]  # a fixture

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)


def settings(*brokers: Mosquitto, **others: object) -> MqttSettings:
    hosts = ", ".join(f"127.0.0.1:{each.port}" for each in brokers)
    return MqttSettings(name="plant", host=hosts, **others)  # type: ignore[arg-type]  # by name


def publish(broker: Mosquitto, *payloads: bytes) -> None:
    sink = open_sink(settings(broker), instance="publisher")
    with opened(sink):
        assert send(sink, *(Message("t", each, ONCE) for each in payloads)) == [ACCEPTED] * len(
            payloads
        )


def address_of(endpoint: Source | Sink) -> str:
    found = getattr(endpoint, "address")  # noqa: B009  # an optional member of a driver
    assert isinstance(found, str)
    return found


@pytest.fixture
def brokers(start_mosquitto: StartMosquitto) -> tuple[Mosquitto, Mosquitto]:
    return start_mosquitto(), start_mosquitto()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the first address often whether it answers."""
    monkeypatch.setattr(addresses, "ASK_INTERVAL", 0.05)


@pytest.mark.broker
def test_a_source_goes_on_at_the_next_address_and_round(
    brokers: tuple[Mosquitto, Mosquitto],
) -> None:
    first, second = brokers
    source = open_source(settings(first, second), [Subscription("t")])
    with opened(source):
        assert address_of(source) == f"127.0.0.1:{first.port}"
        publish(first, b"1")
        assert [each.payload for each in collect(source, 1)] == [b"1"]

        first.kill()
        wait_for_loss(source)
        source.open()

        assert address_of(source) == f"127.0.0.1:{second.port}"
        publish(second, b"2")
        assert [each.payload for each in collect(source, 1)] == [b"2"]

        first.start()
        second.kill()
        wait_for_loss(source)
        source.open()
        assert address_of(source) == f"127.0.0.1:{first.port}"


@pytest.mark.broker
def test_a_sink_sends_to_the_next_address(brokers: tuple[Mosquitto, Mosquitto]) -> None:
    first, second = brokers
    sink, reader = (
        open_sink(settings(first, second)),
        open_source(settings(second), [Subscription("t")]),
    )
    with opened(reader, sink):
        first.kill()
        until(lambda: not is_up(sink))
        sink.open()

        assert address_of(sink) == f"127.0.0.1:{second.port}"
        assert send(sink, Message("t", b"x", ONCE)) == [ACCEPTED]
        assert [each.payload for each in collect(reader, 1)] == [b"x"]


def is_up(sink: Sink) -> bool:
    try:
        sink.send((), lambda _: None)
    except NotConnectedError:
        return False
    return True


@pytest.mark.broker
def test_the_error_names_each_address(mosquitto: Mosquitto) -> None:
    mosquitto.kill()
    away = free_port()
    sink = open_sink(
        MqttSettings(name="plant", host=f"127.0.0.1:{away}, 127.0.0.1", port=mosquitto.port)
    )

    with pytest.raises(NotConnectedError) as caught:
        sink.open()

    assert f"127.0.0.1:{away}: cannot connect" in str(caught.value)
    assert f"127.0.0.1:{mosquitto.port}: cannot connect" in str(caught.value)


@pytest.mark.broker
def test_a_broker_that_refuses_does_not_hide_the_next(start_mosquitto: StartMosquitto) -> None:
    refusing, open_ = start_mosquitto("allow_anonymous false"), start_mosquitto()
    sink = open_sink(settings(refusing, open_))
    with opened(sink):
        assert address_of(sink) == f"127.0.0.1:{open_.port}"

    with pytest.raises(EndpointError, match="not authorised") as caught:
        open_sink(settings(refusing, refusing)).open()
    assert not caught.value.retryable


@pytest.mark.parametrize("away", [False, True])
def test_a_refused_subscription_is_one_at_several_addresses_too(peer: Peer, *, away: bool) -> None:
    """Otherwise the gap of a kept session would be `away`, in which nothing is lost."""
    port = peer.settings.port
    host = f"127.0.0.1:{free_port() if away else port}, 127.0.0.1:{port}"
    source = open_source(replace(peer.settings, host=host), [Subscription("no/#")])
    future = peer.opening(source)
    if not away:
        peer.write(WELCOME)
        grant(peer, b"\x87")
        peer.hang_up()
        peer.accept()
    peer.write(WELCOME)
    grant(peer, b"\x87")

    text = r"(cannot connect|'no/#').*'no/#'"
    with pytest.raises(SubscriptionRefusedError, match=text) as caught:
        future.result(PATIENCE)
    assert caught.value.retryable is away
    source.close()


def test_a_witness_ends_with_the_attempt_that_it_was_opened_for(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_errors, "encryption_hint", lambda _settings: "")
    port = peer.settings.port
    host = f"127.0.0.1:{port}, 127.0.0.1:{port}"
    silent = replace(
        peer.settings, host=host, keepalive=600
    )  # pings would end a witness that stays
    source = open_source(silent, [Subscription("t")])
    for _ in range(2):  # in a row that the broker closes: perhaps another client has the id
        future = peer.opening(source)
        peer.write(WELCOME)
        grant(peer)
        future.result(PATIENCE)
        peer.hang_up()
        wait_for_loss(source)
    future = peer.opening(source)
    peer.hang_up()
    peer.accept()
    peer.write(WELCOME)
    grant(peer)
    future.result(PATIENCE)
    peer.hang_up()
    source.close()

    until(lambda: not [each for each in threading.enumerate() if "-witness" in each.name])


@pytest.mark.broker
@pytest.mark.parametrize("cluster", [False, True])
def test_a_session_of_another_broker_is_no_kept_one(
    brokers: tuple[Mosquitto, Mosquitto], *, cluster: bool
) -> None:
    first, second = brokers
    made = settings(first, second, cluster=cluster, client_id=f"kept-{cluster}")
    source = open_source(made, [Subscription("t")])
    visits = []
    with opened(source):
        for broker in (first, second, first):
            visits.append(source.continuity.retention)
            broker.stop()
            wait_for_loss(source)
            broker.start()
            source.open()
    kept = Retention.KEPT if cluster else Retention.NEW
    assert visits == [Retention.NEW, Retention.NEW, kept]


@pytest.mark.broker
def test_a_session_made_by_an_attempt_that_failed_is_new(mosquitto: Mosquitto) -> None:
    wire = Wire(mosquitto.port)
    wire.poison = b"t/#"  # the attempt ends while it subscribes
    made = MqttSettings(host="127.0.0.1", port=wire.port, client_id="new")
    source = open_source(made, [Subscription("t/#")])
    with pytest.raises(NotConnectedError):
        source.open()
    wire.poison = b""
    visits = []
    for _ in range(2):
        with opened(source):
            visits.append(source.continuity.retention)
    wire.close()

    assert visits == [Retention.NEW, Retention.KEPT]


@pytest.mark.broker
def test_a_count_of_another_broker_is_no_loss(brokers: tuple[Mosquitto, Mosquitto]) -> None:
    first, second = brokers
    kept = Headers(mode=DeliveryMode.AT_LEAST_ONCE, retained=True)
    for broker, count in ((first, b"7"), (second, b"9")):
        with opened(sink := open_sink(settings(broker))):
            send(sink, Message("dropped", count, kept))
    source = open_source(settings(first, second, dropped_topic="dropped"), [Subscription("t")])
    with opened(source):
        until(lambda: source.receive(0.05) is None and source.continuity.dropped == 7)
        first.kill()
        wait_for_loss(source)
        source.open()
        until(lambda: source.receive(0.05) is None and source.continuity.dropped == 9)
        assert source.continuity.take_losses() == []


@pytest.mark.broker
@pytest.mark.usefixtures("often")
def test_a_source_returns_when_all_is_settled(brokers: tuple[Mosquitto, Mosquitto]) -> None:
    first, second = brokers
    first.kill()
    source = open_source(
        settings(first, second, fail_back=True, client_id="back"), [Subscription("t")]
    )
    with opened(source):
        assert address_of(source) == f"127.0.0.1:{second.port}"
        publish(second, b"1", b"2")
        (batch,) = hold(source, 2)
        first.start()
        until(lambda: source.addresses.first_answers)
        assert source.receive(0.3) is None  # an unsettled message keeps it there

        batch.settle([ACCEPTED, ACCEPTED])
        with pytest.raises(LeftError, match=f"127.0.0.1:{first.port} answers again"):
            receive(source)
        source.open()

        assert address_of(source) == f"127.0.0.1:{first.port}"
        publish(first, b"3")
        assert [each.payload for each in collect(source, 1)] == [b"3"]
    left = open_source(settings(second, client_id="back"), [Subscription("t")])
    with opened(left):  # the two were acknowledged before
        assert left.receive(0.3) is None


@pytest.mark.broker
@pytest.mark.usefixtures("often")
def test_a_closed_source_asks_no_longer(brokers: tuple[Mosquitto, Mosquitto]) -> None:
    first, second = brokers
    first.kill()
    made = settings(first, second, fail_back=True, client_id="closed")
    with opened(open_source(made, [Subscription("t")])):
        assert asking("closed")

    until(lambda: not asking("closed"))


def asking(client_id: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if f"mqtt {client_id} asks" in each.name]


@pytest.mark.broker
@pytest.mark.usefixtures("often")
def test_a_source_that_is_never_quiet_stays(
    brokers: tuple[Mosquitto, Mosquitto], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "QUIET_TIMEOUT", 0.0)
    first, second = brokers
    first.kill()
    source = open_source(settings(first, second, fail_back=True), [Subscription("t")])
    with opened(source):
        publish(second, b"1")
        (batch,) = hold(source, 1)
        first.start()
        until(lambda: source.addresses.first_answers)
        source.receive(0.0)
        source.receive(0.0)
        publish(second, b"2")
        (more,) = hold(source, 1)  # it reads on
        assert [each.payload for each in more.messages] == [b"2"]
        batch.settle([ACCEPTED])
        more.settle([ACCEPTED])


@pytest.mark.broker
@pytest.mark.usefixtures("often")
def test_a_sink_returns_when_all_is_answered(brokers: tuple[Mosquitto, Mosquitto]) -> None:
    first, second = brokers
    first.kill()
    sink = open_sink(settings(first, second, fail_back=True))
    with opened(sink):
        first.start()
        until(lambda: sink.addresses.first_answers)
        second.freeze()
        answer = Answer()
        sink_left = pytest.raises(LeftError, match="answers again")
        state = sink._state  # noqa: SLF001  # a message in flight
        assert state is not None
        state.send([Message("t", b"x", ONCE)], answer)
        second.thaw()
        with sink_left:
            sink.send([Message("t", b"y", ONCE)], lambda _: None)
        assert answer.wait() == [ACCEPTED]

        reopen(sink)
        assert address_of(sink) == f"127.0.0.1:{first.port}"


@pytest.mark.broker
@pytest.mark.usefixtures("often")
def test_nothing_returns_unasked(brokers: tuple[Mosquitto, Mosquitto]) -> None:
    first, second = brokers
    first.kill()
    source, sink = (
        open_source(settings(first, second), [Subscription("t")]),
        open_sink(settings(first, second)),
    )
    with opened(source, sink):
        first.start()
        assert source.receive(0.5) is None
        assert not source.addresses.first_answers
        assert is_up(sink)
        assert address_of(source) == address_of(sink) == f"127.0.0.1:{second.port}"


@pytest.mark.parametrize(
    ("host", "port", "found"),
    [
        ("a", 0, ["a:1883"]),
        ("a, b:1884", 1885, ["a:1885", "b:1884"]),
        ("::1", 0, ["[::1]:1883"]),
        ("[::1]:1884,fe80::1", 0, ["[::1]:1884", "[fe80::1]:1883"]),
    ],
)
def test_addresses(host: str, port: int, found: list[str]) -> None:
    made = MqttSettings(host=host, port=port)

    assert [each.address for each in made.each_address] == found
    assert not [*made.faults()]


@pytest.mark.parametrize("host", ["", "a,", "tcp://a", "a:70000", "a b", "a,b/c"])
def test_no_addresses(host: str) -> None:
    (fault, *_) = MqttSettings(host=host).faults()
    assert fault.key == "host"


def test_the_key_of_a_broker_does_not_depend_on_the_order() -> None:
    assert MqttSettings(host="a").broker_key == "mqtt://a:1883"
    both = MqttSettings(host="a,b").broker_key
    assert both == MqttSettings(host="b, a").broker_key == "mqtt://a:1883,b:1883"


def test_the_address_that_is_tried_is_shown() -> None:
    """An absent host takes the whole `connect_timeout`."""
    addresses = Addresses(MqttSettings(name="plant", host="a, b, c"), "client")
    shown: list[str] = []

    def refuse(_: MqttSettings) -> None:
        shown.append(addresses.tried)
        raise NotConnectedError("plant: no answer")

    with pytest.raises(NotConnectedError):
        addresses.connect(refuse)
    assert shown == ["a:1883", "b:1883", "c:1883"]
