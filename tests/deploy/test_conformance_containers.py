"""The conformance suite against the rows of the table of images, each in a container.

The tests of a row share its container. So each of them has names, clients and queues of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest

from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.trial.brokers.activemq import FACTORY, client_jars, missing
from tests.brokers.containers import (
    LOOPBACK,
    ServerContainer,
    pulled,
    serving,
    wait_until_it_serves,
)
from tests.brokers.servers import IBM_PASSWORD, IMAGES, Image
from tests.conformance.test_endpoints import *  # noqa: F403  # its tests, with the systems below
from tests.deploy.conftest import BROKERS
from tests.deploy.engine import Engine
from tests.endpoints.systems import System
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.nightly, pytest.mark.broker]

IBM_JARS = "GATEWAY_TEST_IBM_JARS"  # variable; the vendor's client, which no package has
_numbers = count()
Settings = Callable[[str, int], EndpointSettings]  # of the name of a test and the server's port


def _mqtt(version: str) -> Settings:
    def settings(name: str, port: int) -> EndpointSettings:
        return MqttSettings(name="mqtt", host=LOOPBACK, port=port, version=version, client_id=name)

    return settings


def _nats(name: str, port: int) -> EndpointSettings:
    url = f"nats://{LOOPBACK}:{port}"
    return NatsSettings(
        name="nats", url=url, stream=name, create_stream=True, subjects=(f"{name}.>",)
    )


def _rabbitmq(name: str, port: int) -> EndpointSettings:
    url = f"amqp://guest:guest@{LOOPBACK}:{port}/"
    return RabbitmqSettings(url=url, backoff_min=0.05, queue=name, on_unroutable="drop")


def _amqp(known: str) -> Settings:
    def settings(name: str, port: int) -> EndpointSettings:
        url = f"amqp://guest:guest@{LOOPBACK}:{port}/"
        return AmqpSettings(
            url=url, backoff_min=0.05, known=known, queue=name, container_id=name,
            on_unroutable="drop",
        )  # fmt: skip

    return settings


def _jms(name: str, port: int) -> EndpointSettings:
    if why := missing():
        pytest.skip(why)
    return JmsSettings(
        name="amq", classpath=client_jars(), factory=FACTORY, connect_timeout=5.0,
        urls=(f"tcp://{LOOPBACK}:{port}",), client_id=name, durable="gateway",
    )  # fmt: skip


def _ibm(name: str, port: int) -> EndpointSettings:
    if not (jars := os.environ.get(IBM_JARS)):
        pytest.skip(f"the client of IBM MQ is absent: name its jars in {IBM_JARS}")
    return JmsSettings(
        name="ibm", classpath=tuple(jars.split(":")), dialects=("ibm",),
        factory="com.ibm.mq.jms.MQConnectionFactory",
        properties=(
            f"hostName={LOOPBACK}", f"port={port}", "transportType=1", "queueManager=QM1",
            "channel=DEV.APP.SVRCONN",
        ),
        username="app", password=IBM_PASSWORD, client_id=name, durable="gateway",
    )  # fmt: skip


def _solace(name: str, port: int) -> EndpointSettings:
    url = f"tcp://{LOOPBACK}:{port}"
    return SolaceSettings(
        name="solace",
        url=url,
        username="default",
        connect_timeout=5.0,
        queue=f"{name}-{{instance}}",
    )


def _kafka(name: str, port: int) -> EndpointSettings:
    return KafkaSettings(
        bootstrap_servers=(f"{LOOPBACK}:{port}",), backoff_min=0.05, client_id=name, group_id=name,
        max_message=2 << 20,
    )  # fmt: skip


def _make_topic(name: str, port: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # noqa: PLC0415  # the kind is skipped without it

    admin = AdminClient({"bootstrap.servers": f"{LOOPBACK}:{port}"})
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(PATIENCE)


@dataclass(frozen=True)
class Kind:
    """One kind of endpoint: how its names are spelled, and its settings by variant."""

    separator: str
    rest: str  # the wildcard for the rest of a name
    illegal: str  # an address that no message can have
    settings: dict[str, Settings]
    above: tuple[str, ...] = ()  # levels that the server wants before all others
    blank: str = " "
    colon: bool = False  # stands behind the first level
    prepare: Callable[[str, int], None] = lambda _name, _port: None  # as `Settings`

    def spell(self, levels: tuple[str, ...]) -> str:
        found = self.separator.join((*self.above, *levels)).replace(" ", self.blank)
        return found.replace(self.separator, ":", 1) if self.colon else found


KINDS = {
    "mqtt": Kind("/", "#", "a/+/b", {"-5": _mqtt("5"), "-3.1.1": _mqtt("3.1.1")}),
    "nats": Kind(".", ">", "a.*.b", {"": _nats}, blank="%20"),
    "rabbitmq": Kind(".", "#", "a.*.b", {"": _rabbitmq}),
    "amqp": Kind(".", "#", "a.*.b", {"": _amqp("rabbitmq-4")}),
    "amqp-artemis": Kind(".", "#", "a.*.b", {"": _amqp("artemis")}),
    "amqp-solace": Kind("/", ">", "x" * 251, {"": _amqp("solace")}),
    "jms": Kind(".", ">", "a.*.b", {"": _jms}),
    "ibm": Kind("/", "#", "a/+/b", {"": _ibm}, above=("dev",)),
    "solace": Kind("/", ">", "x" * 251, {"": _solace}),
    "kafka": Kind(".", ">", "a b:c", {"": _kafka}, colon=True, prepare=_make_topic),
}
ROWS = [
    pytest.param((row, settings), id=row.name + variant)
    for row in IMAGES
    for variant, settings in KINDS[row.kind].settings.items()
]


@pytest.fixture(scope="module", params=ROWS)
def row(request: pytest.FixtureRequest) -> tuple[Image, Settings]:
    found: tuple[Image, Settings] = request.param
    return found


@pytest.fixture(scope="module")
def container(
    row: tuple[Image, Settings], engine: Engine, request: pytest.FixtureRequest
) -> Iterator[ServerContainer]:
    server, settings = row
    settings(server.name, server.port)  # skips without the vendor's client
    with pytest.MonkeyPatch.context() as patch:
        if host := engine.environment.get("DOCKER_HOST"):
            patch.setenv("DOCKER_HOST", host)
        if server.built:
            base = request.getfixturevalue("base")
            name = engine.build(BROKERS, server.image, f"gateway-test-{server.image}", base)
        else:
            name = pulled(server)
        with serving(server, name) as container:
            wait_until_it_serves(make_sink(settings(server.name, container.port)), container)
            yield container


@pytest.fixture  # type: ignore[no-redef]  # in place of the imported one
def system(row: tuple[Image, Settings], container: ServerContainer) -> System:
    """The row's server with names of this test; it is started again if the last test ended it."""
    server, settings = row
    kind, name = KINDS[server.kind], f"c{next(_numbers)}"
    if not container.is_running:
        container.start()
        wait_until_it_serves(make_sink(settings(name, container.port)), container)
    kind.prepare(name, container.port)
    return System(
        settings(name, container.port),
        spell=lambda levels: kind.spell((name, *levels)),
        rest=lambda levels: kind.spell((name, *levels, kind.rest)),
        illegal=kind.illegal,
        retained=server.kind == "mqtt",
        broker=container,
    )


@pytest.fixture  # type: ignore[no-redef]  # in place of the imported one
def breakable_for_long(breakable: System) -> System:
    return breakable
