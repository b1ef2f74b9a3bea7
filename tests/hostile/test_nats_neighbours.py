"""A client of the same NATS server forges no answer, and names no id of the gateway's messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final

import pytest

from gateway.config.load import load
from gateway.endpoints.base import KeyedIds
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, REPEATED
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime.wiring import keyed_sink
from tests.brokers.nats_server import NatsServer, StartNats
from tests.endpoints.exchange import opened, send
from tests.endpoints.nats.stream import ask, say
from tests.waiting import until

pytest.importorskip("nats")

ERROR: Final = {"error": {"code": 400, "description": "forged"}, "stream": "T"}
USERS: Final = (  # as in docs/nats.md
    'authorization {default_permissions: {publish: {deny: ["_GW.>"]}, subscribe: {deny: ["_GW.>"]}}'
    '\nusers: [{user: gw, password: right, permissions: {publish: ">", subscribe: ">"}},'
    " {user: other, password: right}]}"
)


@contextmanager
def hearing(settings: NatsSettings, forge: Callable[[str], Mapping[str, object]]) -> Iterator[None]:
    """Hear each subject of the stream, and give the answers that `forge` makes for a reply."""
    from gateway.endpoints.nats.connection import NatsConnection  # noqa: PLC0415  # skips without it

    connection = NatsConnection(settings, lambda _failure: None)

    async def give(message: Any) -> None:  # noqa: ANN401  # the driver's
        for subject, answer in forge(message.reply).items():
            await connection.client.publish(subject, json.dumps(answer).encode())

    async def listen() -> None:
        await connection.client.subscribe("t.>", cb=give)
        await connection.client.flush()

    try:
        connection.call(listen())
        yield
    finally:
        connection.close()


def all_that_follow(reply: str) -> Mapping[str, object]:
    """Refuse a message, and the next numbers before they are sent."""
    start, _, own = reply.rpartition(".")
    number = int(own.partition("-")[0])
    return {f"{start}.{each}": ERROR for each in (own, *range(number + 1, number + 50))}


def of_stream(server: NatsServer, **facts: Any) -> NatsSettings:  # noqa: ANN401  # settings
    return NatsSettings(url=server.url, stream="T", create_stream=True, subjects=("t.>",), **facts)


def said(count: int) -> list[Message]:
    return [say(number, source_id=f"m{number}") for number in range(count)]


def test_an_error_counts_only_when_a_second_sending_gets_one(nats_server: NatsServer) -> None:
    seen: list[str] = []

    def refuse_first(reply: str) -> Mapping[str, object]:
        seen.append(reply)
        return {reply: ERROR if len(seen) == 1 else {"stream": "T", "seq": 1}}

    settings = NatsSettings(url=nats_server.url)  # the neighbour is the stream, too
    with opened(sink := make_sink(settings)), hearing(settings, refuse_first):
        assert send(sink, say(1)) == [ACCEPTED]
    assert len({*seen}) == 2  # sendings


def test_a_neighbour_cannot_name_the_answer_of_a_later_message(nats_server: NatsServer) -> None:
    settings = of_stream(nats_server)
    with opened(sink := make_sink(settings)), hearing(settings, all_that_follow):
        answers = [send(sink, each)[0] for each in said(200)]

    assert {*answers} <= {ACCEPTED, REPEATED}


def test_nobody_answers_under_a_prefix_that_only_the_server_may_use(start_nats: StartNats) -> None:
    from gateway.endpoints.nats.connection import NatsConnection  # noqa: PLC0415  # as above

    server = start_nats(USERS)
    other = NatsSettings(url=server.url, username="other", password="right")  # noqa: S106  # of a test
    settings = of_stream(server, username="gw", password="right", inbox_prefix="_GW.plant-1")  # noqa: S106
    denied: list[str] = []
    with opened(sink := make_sink(settings)):
        assert {*send(sink, *said(20))} == {ACCEPTED}
        connection = NatsConnection(other, lambda _failure: None, denied.append)
        connection.call(connection.client.publish("_GW.plant-1.x.1", b"{}"))
        until(lambda: denied == ["_gw.plant-1.x.1"])
        connection.close()


def test_a_stranger_cannot_send_a_message_with_the_next_id_first(nats_server: NatsServer) -> None:
    settings = of_stream(nats_server)
    sink = make_sink(settings)
    digest = blake2b(digest_size=16)
    for part in (b"m1", b"t.x", b"1"):
        digest.update(len(part).to_bytes(8, "big") + part)
    taken = {"Nats-Msg-Id": digest.hexdigest()}
    with opened(sink):
        ask(settings, lambda js: js.publish("t.other", b"", headers=taken))
        assert send(sink, say(1, source_id="m1")) == [ACCEPTED]


def test_the_key_of_ids_is_one_for_a_pair_and_for_a_command(tmp_path: Any) -> None:  # noqa: ANN401
    def key(secret: str, digits: str) -> bytes:
        file = tmp_path / "gateway.yaml"
        file.write_text(
            "gateway: {name: a, path_key: '${env:KEY}'}\n"
            "endpoints: {bus: {kind: nats}, plant: {kind: mqtt, host: localhost}}\n"
            "routes: {out: {from: {endpoint: plant, pattern: 'a/{r...}'},"
            " to: {endpoint: bus, template: 'a.{r...}'}}}\n"
        )
        configuration = load(file, {"KEY": secret})
        sink = keyed_sink(configuration, "bus", GatewayIdentity("a", digits))
        assert isinstance(sink, KeyedIds)
        return sink.id_key

    secret = "x" * 32
    assert key(secret, "1") == key(secret, "2") != key("y" * 32, "1")
