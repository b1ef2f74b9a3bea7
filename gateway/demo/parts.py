"""The systems of the demo: which are here, how they start, and what must arrive through each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from gateway.brokers import activemq
from gateway.brokers.smf import SmfBroker
from gateway.brokers.yami4 import BrokerOptions, Yami4Broker
from gateway.demo.broker import mqtt_broker
from gateway.demo.feed import is_order, is_reading, is_temperature

VERSIONS = {"mosquitto": "5", "amqtt": "3.1.1"}  # the best each broker speaks

Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """One system: its mapping file, how its broker starts, and what arrives at MQTT through it.

    `absent` says why it cannot run here, or nothing. `arrives` maps a first level at the far end
    to the topics of the feed that end below it.
    """

    name: str
    mapping: str
    start: Callable[[Path], AbstractContextManager[Environment]]
    arrives: Mapping[str, Callable[[str], bool]]
    absent: Callable[[], str] = lambda: ""


@contextmanager
def running(folder: Path) -> Iterator[tuple[list[Part], list[str], Environment]]:
    """The parts that run, what is missing for the others, and the environment of the mappings.

    Starts their brokers, and puts their mapping files into `folder`.
    """
    parts = [part for part in PARTS if not part.absent()]
    missing = [f"{part.name}: {part.absent()}" for part in PARTS if part.absent()]
    environment = dict(os.environ)
    with ExitStack() as stack:
        for part in parts:
            own = folder / part.name
            own.mkdir()
            environment |= stack.enter_context(part.start(own))
            text = (files("gateway.demo") / "mapping" / part.mapping).read_text(encoding="utf-8")
            (folder / part.mapping).write_text(text, encoding="utf-8")
        yield parts, missing, environment


@contextmanager
def _mqtt(_: Path) -> Iterator[Environment]:
    with mqtt_broker() as (name, port):
        yield {"DEMO_MQTT_PORT": str(port), "DEMO_MQTT_VERSION": VERSIONS[name], "DEMO_MQTT": name}


@contextmanager
def _yami4(_: Path) -> Iterator[Environment]:
    with Yami4Broker(options=BrokerOptions(max_client_queue=100_000)) as broker:
        yield {"DEMO_YAMI4_URL": broker.url}


@contextmanager
def _jms(folder: Path) -> Iterator[Environment]:
    with activemq.running(folder) as broker:
        jars = folder / "jars"
        jars.mkdir()
        for jar in activemq.client_jars():
            (jars / Path(jar).name).symlink_to(jar)
        yield {"DEMO_JMS_URL": broker.url, "DEMO_JMS_CLASSPATH": f"{jars}/*.jar"}


@contextmanager
def _smf(_: Path) -> Iterator[Environment]:
    with SmfBroker() as broker:
        yield {"DEMO_SMF_URL": broker.url, "DEMO_SMF_PASSWORD": "demo"}


def _no_jms() -> str:
    return activemq.missing() or ("" if find_spec("jpype") else "pip install 'gateway[jms]'")


def _no_smf() -> str:
    return "" if find_spec("solace") else "pip install 'gateway[solace]'"


PARTS = (
    Part("ems", "10-ems.yaml", _mqtt, {"erp": is_order, "historian": is_reading}),
    Part("yami4", "20-yami4.yaml", _yami4, {"dashboard": is_temperature}),
    Part("jms", "30-jms.yaml", _jms, {"billing": is_order}, _no_jms),
    Part("solace", "40-solace.yaml", _smf, {"trades": is_order}, _no_smf),
)
