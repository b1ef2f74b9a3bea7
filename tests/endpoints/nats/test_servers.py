"""NATS over cut and silent connections, with several addresses, and in a cluster of three."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from gateway.endpoints.base import Source, Subscription, address_of
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import NotConnectedError
from gateway.model.outcome import ACCEPTED, RETRY
from gateway.trial.brokers.listening import free_port
from tests.brokers.nats_server import NatsServer, StartNats
from tests.brokers.wire import Wire
from tests.endpoints.exchange import (
    Answer,
    collect,
    cross_cuts,
    hold,
    numbers_of,
    opened,
    reopen,
    say,
    send,
    send_all,
    wait_for_loss,
)
from tests.waiting import PATIENCE

T = NatsSettings(stream="T", create_stream=True, subjects=("t.>",), keepalive=0.2)


@pytest.fixture
def wire(nats_server: NatsServer) -> Iterator[Wire]:
    relay = Wire(nats_server.port)
    yield relay
    relay.close()


def source_of(settings: NatsSettings) -> Source:
    return make_source(settings, [Subscription("t.>")], instance="r")


def test_a_cut_connection_loses_nothing_and_keeps_the_order(wire: Wire) -> None:
    settings = replace(T, url=f"nats://127.0.0.1:{wire.port}")

    assert cross_cuts(wire, source_of(settings), make_sink(settings)) == list(range(900))


def test_a_source_notices_a_cut_while_its_answers_leave(wire: Wire) -> None:
    """The library forgets to say that a connection ended while it had something to write."""
    settings = replace(T, url=f"nats://127.0.0.1:{wire.port}", keepalive=5.0)
    source, sink = source_of(settings), make_sink(settings)
    for attempt in range(20):
        reopen(sink)
        reopen(source)
        send_all(sink, [say(attempt * 100 + number) for number in range(100)])
        batches = hold(source, 100)
        for batch in batches:
            batch.settle([ACCEPTED] * len(batch.messages))
        wire.cut()
        wait_for_loss(source)
    source.close()
    sink.close()


def test_a_silent_connection_ends_source_and_sink(wire: Wire) -> None:
    settings = replace(T, url=f"nats://127.0.0.1:{wire.port}", answer_timeout=3.0)
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        wire.stall()
        answer = Answer()
        sink.send([say(1)], answer)

        assert answer.wait() == [RETRY]
        wait_for_loss(source)
        wire.flow()
        reopen(sink)
        reopen(source)
        send_all(sink, [say(1)])
        assert numbers_of(source, 1) == [1]


def test_an_end_while_nothing_answers_is_quick(wire: Wire) -> None:
    settings = replace(T, url=f"nats://127.0.0.1:{wire.port}")
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        wire.stall()
        answer = Answer()
        sink.send([replace(say(1), payload=bytes(1 << 20))] * 8, answer)
    assert answer.wait() == [RETRY] * 8
    wire.flow()


def test_the_next_address_is_tried(nats_server: NatsServer) -> None:
    away = f"nats://127.0.0.1:{free_port()}"
    settings = replace(T, url=f"{away}, {nats_server.url}")
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        assert send(sink, say(1)) == [ACCEPTED]
        assert len(collect(source, 1)) == 1
        in_use = nats_server.url.partition("://")[2]
        assert address_of(source) == address_of(sink) == in_use


def test_servers_that_are_all_away_are_named() -> None:
    away = f"nats://127.0.0.1:{free_port()}"

    with pytest.raises(NotConnectedError, match="Connect call failed"):
        make_sink(replace(T, url=f"{away},{away}")).open()


def test_a_port_that_says_nothing_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"nats://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NotConnectedError, match=f"{url}: no answer within 0.3 s"):
            make_sink(replace(T, url=url, connect_timeout=0.3)).open()


def test_a_cluster_carries_on_while_each_of_its_servers_is_killed(start_nats: StartNats) -> None:
    servers = start_nats.cluster(3)
    urls = ",".join(server.url for server in servers)
    settings = replace(T, url=urls, replicas=3, answer_timeout=2.0, connect_timeout=2.0)
    source, sink = source_of(settings), make_sink(settings)
    reopen(sink)
    reopen(source)
    try:
        for begin, server in zip(range(0, 600, 200), servers, strict=True):
            send_all(sink, [say(number) for number in range(begin, begin + 100)])
            server.kill()
            send_all(sink, [say(number) for number in range(begin + 100, begin + 200)])
            assert numbers_of(source, begin + 199) == list(range(begin, begin + 200))
            server.start()
    finally:
        source.close()
        sink.close()


def test_core_nats_accepts_what_the_server_has_read() -> None:
    """The server answers a PING; the library writes it before what waits to be written."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=answer_pings, args=(listening, heard), daemon=True)
        thread.start()
        sink = make_sink(NatsSettings(url=f"nats://127.0.0.1:{port}", jetstream=False))
        with opened(sink):
            assert send(sink, *(say(number) for number in range(3))) == [ACCEPTED] * 3
            pings = b"".join(heard).split(b"PING\r\n")
    thread.join(PATIENCE)

    assert len(pings) > 2  # one of the log-in, one of the messages
    assert pings[1].count(b"PUB t.x") == 3, pings


def answer_pings(listening: socket.socket, heard: list[bytes]) -> None:
    client, _ = listening.accept()
    with client, suppress(OSError):
        client.settimeout(PATIENCE)
        client.sendall(b'INFO {"headers": true, "max_payload": 1048576}\r\n')
        while data := client.recv(65_536):
            heard.append(data)
            client.sendall(b"PONG\r\n" * data.count(b"PING\r\n"))
