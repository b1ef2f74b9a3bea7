"""NATS over cut and silent connections, with several addresses, and in a cluster of three."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from gateway.endpoints.base import Source, Subscription, address_of
from gateway.endpoints.continuity import Retention
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import NotConnectedError
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY
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
from tests.endpoints.nats.stream import ask
from tests.waiting import PATIENCE, until

T = NatsSettings(stream="T", create_stream=True, subjects=("t.>",), keepalive=1.0)


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


def test_a_server_that_answers_no_ping_is_named(wire: Wire) -> None:
    source = source_of(replace(T, url=f"nats://127.0.0.1:{wire.port}"))
    with opened(source):
        wire.stall()
        with pytest.raises(NotConnectedError, match="stale connection"):
            source.receive(PATIENCE)
        wire.flow()


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

    with pytest.raises(NotConnectedError, match="Connection refused"):
        make_sink(replace(T, url=f"{away},{away}")).open()


def test_a_port_that_says_nothing_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"nats://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NotConnectedError, match=f"{url}: no answer within 0.3 s"):
            make_sink(replace(T, url=url, connect_timeout=0.3)).open()


QUESTION = "$JS.API.CONSUMER.INFO.T.gateway-nats-r"


@pytest.fixture
def silent_server() -> Iterator[NatsSettings]:
    """Settings of a server that answers a PING, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer_pings, args=(listening, []), daemon=True)
        thread.start()
        yield NatsSettings(url=f"nats://127.0.0.1:{listening.getsockname()[1]}", stream="T")
    thread.join(PATIENCE)


def test_a_question_without_an_answer_is_named(silent_server: NatsSettings) -> None:
    source = source_of(replace(silent_server, answer_timeout=0.2))

    reason = f"no answer to {QUESTION!r} within 0.2 s"
    with pytest.raises(NotConnectedError, match=re.escape(reason)):
        source.open()


def test_each_question_has_the_time_for_an_answer(wire: Wire) -> None:
    """A start asks six questions; a slow server answers each in time, and not all together."""
    settings = replace(T, url=f"nats://127.0.0.1:{wire.port}", answer_timeout=2.5, keepalive=5.0)
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        send(sink, say(1))
        hold(source, 1)
        wire.delay = 0.6
        source.open()
        wire.delay = 0.0
        assert numbers_of(source, 1) == [1]


def test_a_question_ends_with_its_connection(wire: Wire) -> None:
    wire.poison = b"CONSUMER.INFO"
    settings = replace(T, url=f"nats://127.0.0.1:{wire.port}", answer_timeout=PATIENCE)

    with pytest.raises(NotConnectedError, match=r"unexpected EOF|reset by peer"):
        source_of(settings).open()


def test_a_source_that_is_closed_while_it_opens_says_so(silent_server: NatsSettings) -> None:
    source = source_of(replace(silent_server, answer_timeout=PATIENCE))
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(source.open)
        until(lambda: asks(source))
        source.close()
        with pytest.raises(NotConnectedError, match="is closed"):
            opening.result(PATIENCE)


def asks(source: Source) -> bool:
    """Return whether a source that opens has logged in."""
    intake = source._interrupt.__self__._intake  # type: ignore[attr-defined]  # noqa: SLF001  # as above
    return intake is not None and getattr(intake.connection, "jetstream", None) is not None


def test_a_consumer_made_by_an_attempt_that_failed_is_new(
    wire: Wire, nats_server: NatsServer
) -> None:
    with opened(make_sink(replace(T, url=nats_server.url))):
        pass
    settings = replace(T, url=f"nats://127.0.0.1:{wire.port}", create_stream=False)
    wire.poison = b"STREAM.INFO"
    source = source_of(settings)
    with pytest.raises(NotConnectedError):
        source.open()
    wire.poison = b""
    with opened(source):
        assert source.continuity.retention is Retention.NEW  # type: ignore[attr-defined]  # of this source


@pytest.mark.nightly
def test_a_cluster_carries_on_while_each_of_its_servers_is_killed(start_nats: StartNats) -> None:
    """A stream without a leader takes nothing, and each message waits for the one before it.

    Answers that a killed server had and told nobody are forgotten: old messages may come again.
    """
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
            for number in range(begin + 100, begin + 200):
                send_all(sink, [say(number)])
            new = [each for each in numbers_of(source, begin + 199) if each >= begin]
            assert new == list(range(begin, begin + 200))
            server.start()
    finally:
        source.close()
        sink.close()


def test_a_stream_whose_only_server_is_away_has_no_room(start_nats: StartNats) -> None:
    """Every message breaks the connection alone otherwise, and becomes a dead letter so."""
    servers = start_nats.cluster(3)
    settings = replace(T, url=servers[0].url, answer_timeout=2.0)
    leaders: list[str] = []

    async def find_leader(jetstream: Any) -> None:  # noqa: ANN401  # the driver's
        leaders.append((await jetstream.stream_info("T")).cluster.leader)

    with opened(make_sink(settings)):
        ask(settings, find_leader)
    place = int(leaders[0].removeprefix("s"))
    sink = make_sink(replace(settings, url=servers[place - 1].url, create_stream=False))

    def waits() -> bool:
        try:
            return send(sink, say(1))[0].rule == NO_ROOM.rule
        except NotConnectedError:  # the rest of the cluster has no leader yet
            reopen(sink)
        return False

    with opened(sink):
        servers[place].kill()
        until(waits)


def test_a_cluster_that_places_no_stream_yet_is_asked_again(start_nats: StartNats) -> None:
    """Its server calls that a bad request."""
    servers = start_nats.cluster(3)
    for server in servers:
        server.kill()
    for server in servers[:2]:
        server.launch()
    for server in servers[:2]:
        server.wait()
    sink = make_sink(replace(T, url=servers[0].url, replicas=3))

    def refused() -> bool:  # before it, a request has no answer while the two elect a leader
        with pytest.raises(NotConnectedError) as caught:
            sink.open()
        return "no suitable peers" in str(caught.value)

    until(refused, "the cluster never said so")
    servers[2].start()
    reopen(sink)
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
