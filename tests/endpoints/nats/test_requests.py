"""Requests from NATS to a service on MQTT 5 or JMS, and the reverse, with the replies back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.nats_server import NatsServer
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker
CONFIG = """\
gateway: {{name: requests}}
endpoints:
  bus: {{kind: nats, url: "{url}", jetstream: false}}
  other: {{{other}}}
routes:
{routes}
archive: {{path: {folder}/archive}}
"""
OUT = """\
  requests: {{from: {{endpoint: bus, pattern: "ask.{{rest...}}"}}, to: {{endpoint: other}}}}
  replies:
    from: {{endpoint: other, pattern: "%5FINBOX{mark}{{rest...}}"}}
    to: {{endpoint: bus, template: "_INBOX.{{rest...}}"}}
    replies_within: 60
"""
BACK = """\
  requests: {{from: {{endpoint: other, pattern: "ask{mark}{{rest...}}"}}, to: {{endpoint: bus}}}}
  replies: {{from: {{endpoint: bus, pattern: "re.{{rest...}}"}}, to: {{endpoint: other}}}}
"""


@contextmanager
def bridged(folder: Path, server: NatsServer, other: str, routes: str) -> Iterator[Gateway]:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(url=server.url, other=other, routes=routes, folder=folder))
    gateway = Gateway(load(file))
    gateway.start()
    try:
        until(lambda: all(state.connection.value == "connected" for state in gateway.states))
        yield gateway
    finally:
        assert gateway.stop(PATIENCE)


@pytest.fixture(params=["mqtt", "jms"])
def service(request: pytest.FixtureRequest) -> tuple[EndpointSettings, str, str]:
    """Return the settings of the service's own client, those of the gateway, and the separator."""
    if request.param == "mqtt":
        mosquitto: Mosquitto = request.getfixturevalue("mosquitto")
        text = f"kind: mqtt, version: '5', host: 127.0.0.1, port: {mosquitto.port}"
        return MqttSettings(host="127.0.0.1", port=mosquitto.port, version="5"), text, "/"
    activemq: ActiveMq = request.getfixturevalue("activemq")
    jars = ", ".join(client_jars())
    text = f"kind: jms, classpath: [{jars}], factory: {FACTORY}, urls: ['{activemq.url}']"
    return activemq.settings(name="service"), text, "."


async def ask(server: NatsServer, subject: str, payload: bytes) -> bytes:
    from nats import connect  # noqa: PLC0415  # skips without it

    client: Any = await connect(server.url)
    try:
        answer = await client.request(subject, payload, timeout=PATIENCE)
        return bytes(answer.data)
    finally:
        await client.close()


def test_a_request_of_nats_gets_its_reply(
    tmp_path: Path, nats_server: NatsServer, service: tuple[EndpointSettings, str, str]
) -> None:
    own, other, mark = service
    source, sink = make_source(own, [Subscription(f"ask{mark}price{mark}7")]), make_sink(own)
    with (
        bridged(tmp_path, nats_server, other, OUT.format(mark=mark)) as gateway,
        opened(source, sink),
        ThreadPoolExecutor(1) as pool,
    ):
        answer = pool.submit(lambda: asyncio.run(ask(nats_server, "ask.price.7", b"EUR?")))
        (request,) = collect(source, 1)
        assert request.headers.reply_to is not None
        assert request.headers.reply_to.startswith(f"%5FINBOX{mark}")
        send(sink, Message(request.headers.reply_to, b"9.80", Headers(mode=own.mode)))

        assert (bytes(request.payload), answer.result(PATIENCE)) == (b"EUR?", b"9.80")  # type: ignore[arg-type]  # bytes were sent
        send(sink, Message(f"%5FINBOX{mark}somebody{mark}1", b"forged", Headers(mode=own.mode)))
        until(lambda: gateway.counters["replies"].rules == {"not-allowed": 1})


def test_a_request_to_nats_gets_its_reply(
    tmp_path: Path, nats_server: NatsServer, service: tuple[EndpointSettings, str, str]
) -> None:
    own, other, mark = service
    source, sink = make_source(own, [Subscription(f"re{mark}shop{mark}42")]), make_sink(own)
    ready = asyncio.Event()

    async def serve() -> None:
        from nats import connect  # noqa: PLC0415  # skips without it

        client: Any = await connect(nats_server.url)
        asked = await client.subscribe("ask.>")
        await client.flush()
        ready.set()
        message = await asked.next_msg(PATIENCE)
        await message.respond(b"9.80 for " + message.data)
        await client.flush()
        await client.close()

    with (
        bridged(tmp_path, nats_server, other, BACK.format(mark=mark)),
        opened(source, sink),
        ThreadPoolExecutor(1) as pool,
    ):
        served = pool.submit(lambda: asyncio.run(serve()))
        until(ready.is_set)
        reply_to = f"re{mark}shop{mark}42"
        send(sink, Message(f"ask{mark}price", b"7", Headers(mode=own.mode, reply_to=reply_to)))
        served.result(PATIENCE)
        (got,) = collect(source, 1)

    assert got.payload == b"9.80 for 7"
