"""The conformance suite against brokers in containers, each on a network of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.trial.brokers.activemq import FACTORY, client_jars, missing
from gateway.trial.brokers.listening import free_port
from tests.conformance.test_endpoints import *  # noqa: F403  # its tests, with the systems below
from tests.deploy.container import LOOPBACK, Container, started
from tests.deploy.engine import Engine
from tests.endpoints.exchange import reopen
from tests.endpoints.systems import System

pytestmark = [pytest.mark.nightly, pytest.mark.broker]

SYSTEMS = ["mqtt-3.1.1", "mqtt-5", "jms"]
_numbers = count()
Starter = Callable[[str, int], Container]


@pytest.fixture
def start(engine: Engine, net: str, request: pytest.FixtureRequest) -> Starter:
    """Return a function that starts an image whose port is published on the same one."""

    def start(image: str, port: int) -> Container:
        options = ("--network", net, "--publish", f"{LOOPBACK}:{free_port()}:{port}")
        broker = started(engine, image, options=options)
        container = broker.__enter__()
        request.addfinalizer(lambda: broker.__exit__(None, None, None))
        return container

    return start


@pytest.fixture(params=SYSTEMS)  # type: ignore[no-redef]  # in place of the imported one
def system(request: pytest.FixtureRequest, start: Starter) -> System:
    name: str = request.param
    found = _jms(request, start) if name == "jms" else _mqtt(request, start, name)
    sink = found.sink()
    reopen(sink)  # the broker listens
    sink.close()
    return found


def _mqtt(request: pytest.FixtureRequest, start: Starter, name: str) -> System:
    broker = start(request.getfixturevalue("mosquitto_image"), 1883)
    settings = MqttSettings(name="mqtt", host=LOOPBACK, port=broker.port(1883))
    return System(
        replace(settings, version=name.removeprefix("mqtt-")),
        spell="/".join,
        rest=lambda levels: "/".join((*levels, "#")),
        illegal="a/+/b",
        retained=True,
        stop=lambda: _stop(broker),
        start=broker.start,
    )


def _jms(request: pytest.FixtureRequest, start: Starter) -> System:
    if why := missing():
        pytest.skip(why)
    broker = start(request.getfixturevalue("activemq_image"), 61616)
    name = f"container-{next(_numbers)}"
    return System(
        JmsSettings(
            name="amq", classpath=client_jars(), factory=FACTORY, connect_timeout=5.0,
            urls=(f"tcp://{LOOPBACK}:{broker.port(61616)}",), client_id=name, durable="gateway",
        ),
        spell=lambda levels: ".".join((name, *levels)),
        rest=lambda levels: ".".join((name, *levels, ">")),
        illegal="a.*.b",
        stop=lambda: _stop(broker),
        start=broker.start,
    )  # fmt: skip


def _stop(broker: Container) -> None:
    broker.stop()
