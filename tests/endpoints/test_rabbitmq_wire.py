"""RabbitMQ over cut, silent and encrypted connections."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.continuity import Retention
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.outcome import ACCEPTED, RETRY
from tests.brokers.hostile_servers import serving, tls_relaying
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.test_mqtt_tls import make_certificate
from tests.brokers.wire import Wire
from tests.endpoints.exchange import (
    Answer,
    collect,
    cross_cuts,
    opened,
    say,
    send,
    wait_for_loss,
)

CONSUME = b"\0\x3c\0\x14"  # class and method of Basic.Consume, AMQP 0-9-1


@pytest.fixture
def wire(rabbitmq: Vhost) -> Iterator[Wire]:
    relay = Wire(rabbitmq.server.port)
    yield relay
    relay.close()


def through(vhost: Vhost, port: int, scheme: str = "amqp") -> RabbitmqSettings:
    """Return settings for the vhost behind another port."""
    return replace(vhost.settings, url=f"{scheme}://guest:guest@127.0.0.1:{port}/{vhost.name}")


def source_of(settings: RabbitmqSettings) -> Source:
    return make_source(settings, [Subscription("t.#")])


@contextmanager
def encrypted(vhost: Vhost, folder: Path) -> Iterator[int]:
    """Yield a port with TLS, whose certificate `authority.pem` in the folder vouches for."""
    make_certificate(folder, "authority", None)
    make_certificate(folder, "broker", "authority", "subjectAltName=IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "broker.pem", folder / "broker.key")
    with serving(tls_relaying(vhost.server.port, context)) as port:
        yield port


def test_a_cut_connection_loses_nothing_and_keeps_the_order(rabbitmq: Vhost, wire: Wire) -> None:
    settings = through(rabbitmq, wire.port)

    assert cross_cuts(wire, source_of(settings), make_sink(settings)) == list(range(900))


def test_a_silent_connection_ends_source_and_sink(rabbitmq: Vhost, wire: Wire) -> None:
    settings = replace(through(rabbitmq, wire.port), heartbeat=1, answer_timeout=1.0)
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        wire.stall()
        answer = Answer()
        sink.send([say(1)], answer)

        assert answer.wait() == [RETRY]
        wait_for_loss(source)


def test_a_queue_made_by_an_attempt_that_failed_is_new(rabbitmq: Vhost, wire: Wire) -> None:
    source = source_of(through(rabbitmq, wire.port))
    wire.poison = CONSUME
    with pytest.raises(NotConnectedError):
        source.open()
    wire.poison = b""
    with opened(source):
        assert source.continuity.retention is Retention.NEW  # type: ignore[attr-defined]  # of this source


def test_a_source_that_reads_nothing_for_a_while_reads_on_over_tls(
    rabbitmq: Vhost, tmp_path: Path
) -> None:
    with encrypted(rabbitmq, tmp_path) as port:
        settings = replace(
            through(rabbitmq, port, "amqps"),
            tls=TlsSettings(ca_file=str(tmp_path / "authority.pem")),
            receive_window_bytes=65_536,
        )
        source, sink = source_of(settings), make_sink(settings)
        with opened(source, sink):
            long = [replace(say(each), payload=b"%d " % each + bytes(60_000)) for each in range(50)]
            assert send(sink, *long) == [ACCEPTED] * 50
            got = collect(source, 50)
        assert [int(bytes(each.payload)[:2]) for each in got] == list(range(50))  # type: ignore[arg-type]  # bytes were sent


def test_tls_is_verified(rabbitmq: Vhost, tmp_path: Path) -> None:
    make_certificate(tmp_path, "stranger", None)
    with encrypted(rabbitmq, tmp_path) as port:
        settings = through(rabbitmq, port, "amqps")
        right = replace(settings, tls=TlsSettings(ca_file=str(tmp_path / "authority.pem")))
        source, sink = source_of(right), make_sink(right)
        with opened(source, sink):
            assert send(sink, say(1)) == [ACCEPTED]
            assert collect(source, 1)[0].payload == b"1"
        wrong = replace(settings, tls=TlsSettings(ca_file=str(tmp_path / "stranger.pem")))
        with pytest.raises(EndpointError, match="certificate verify failed"):
            source_of(wrong).open()
