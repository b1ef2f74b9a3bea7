"""The systems of the demo: their brokers, mapping files and expected messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from gateway.extras import not_installed
from gateway.trial.brokers import activemq, kafka, nats, rabbitmq
from gateway.trial.brokers.smf import SmfBroker
from gateway.trial.brokers.yami4 import Yami4Broker, Yami4BrokerOptions
from gateway.trial.demo.broker import mqtt_broker
from gateway.trial.demo.feed import is_of_the_plant, is_order, is_reading, is_temperature

VERSIONS = {"mosquitto": "5", "amqtt": "3.1.1"}  # the newest that each broker supports

Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DemoSystem:
    """A system of the demo: its mapping file, its broker, and the messages expected through it.

    `start` gets the stack that ends what it starts, and a folder. `why_missing` returns why the
    system cannot run on this machine, or an empty text. `expected` maps the first level of a topic
    at the target to a predicate over the topics of the feed.
    """

    name: str
    mapping: str
    start: Callable[[ExitStack, Path], Environment]
    expected: Mapping[str, Callable[[str], bool]]
    why_missing: Callable[[], str] = lambda: ""


@contextmanager
def running_systems(folder: Path) -> Iterator[tuple[list[DemoSystem], list[str], Environment]]:
    """Start the brokers of all systems that can run together, and write their mapping files.

    Yields these systems, the reasons why the others are missing, and the environment variables of
    the mappings.
    """
    systems = [system for system in SYSTEMS if not system.why_missing()]
    missing = [f"{each.name}: {why}" for each in SYSTEMS if (why := each.why_missing())]
    environment = dict(os.environ)
    with ExitStack() as stack:

        def start(system: DemoSystem) -> Environment:
            data = folder / system.name
            data.mkdir()
            text = (files("gateway.trial.demo") / "mapping" / system.mapping).read_bytes()
            (folder / system.mapping).write_bytes(text)
            return system.start(stack, data)

        with ThreadPoolExecutor(len(systems)) as pool:
            for found in pool.map(start, systems):
                environment |= found
        yield systems, missing, environment


def _mqtt(stack: ExitStack, _: Path) -> Environment:
    name, port = stack.enter_context(mqtt_broker())
    return {"DEMO_MQTT_PORT": str(port), "DEMO_MQTT_VERSION": VERSIONS[name], "DEMO_MQTT": name}


def _yami4(stack: ExitStack, _: Path) -> Environment:
    options = Yami4BrokerOptions(max_client_queue=100_000)
    return {"DEMO_YAMI4_URL": stack.enter_context(Yami4Broker(options=options)).url}


def _jms(stack: ExitStack, folder: Path) -> Environment:
    broker = stack.enter_context(activemq.running(folder))
    jars = folder / "jars"
    jars.mkdir()
    for jar in activemq.client_jars():
        (jars / Path(jar).name).symlink_to(jar)
    return {"DEMO_JMS_URL": broker.url, "DEMO_JMS_CLASSPATH": f"{jars}/*.jar"}


def _smf(stack: ExitStack, _: Path) -> Environment:
    url = stack.enter_context(SmfBroker()).url
    return {"DEMO_SMF_URL": url, "DEMO_SMF_PASSWORD": "demo"}


def _nats(stack: ExitStack, folder: Path) -> Environment:
    return {"DEMO_NATS_URL": stack.enter_context(nats.running(folder))}


def _rabbitmq(stack: ExitStack, folder: Path) -> Environment:
    return {"DEMO_RABBITMQ_URL": stack.enter_context(rabbitmq.running(folder))}


def _amqp(stack: ExitStack, folder: Path) -> Environment:
    return {"DEMO_AMQP_URL": stack.enter_context(rabbitmq.running(folder))}


def _kafka(stack: ExitStack, folder: Path) -> Environment:
    return {"DEMO_KAFKA_SERVER": stack.enter_context(kafka.running(folder))}


def _why_no_jms() -> str:
    return activemq.missing() or ("" if find_spec("jpype") else not_installed("jpype", "jms"))


def _why_no_smf() -> str:
    return "" if find_spec("solace") else not_installed("solace", "solace")


SYSTEMS = (
    DemoSystem("ems", "10-ems.yaml", _mqtt, {"erp": is_order, "historian": is_reading}),
    DemoSystem("yami4", "20-yami4.yaml", _yami4, {"dashboard": is_temperature}),
    DemoSystem("jms", "30-jms.yaml", _jms, {"billing": is_order}, _why_no_jms),
    DemoSystem("solace", "40-solace.yaml", _smf, {"trades": is_order}, _why_no_smf),
    DemoSystem("nats", "50-nats.yaml", _nats, {"stream": is_of_the_plant}, nats.missing),
    DemoSystem("rabbitmq", "60-rabbitmq.yaml", _rabbitmq, {"shipping": is_order}, rabbitmq.missing),
    DemoSystem("amqp", "70-amqp.yaml", _amqp, {"gauges": is_reading}, rabbitmq.missing_amqp),
    DemoSystem("kafka", "80-kafka.yaml", _kafka, {"lake": is_of_the_plant}, kafka.missing),
)
