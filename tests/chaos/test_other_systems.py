"""Kills, freezes, restarts and reloads with another system between two brokers of MQTT.

Numbers go from one mosquitto over the other system to a second mosquitto, through one gateway
process that both sends to the system and receives from it. The witness at the end is independent.
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from gateway.trial.brokers.activemq import FACTORY, client_jars
from gateway.trial.brokers.listening import free_port
from gateway.trial.brokers.rabbitmq import PROGRAM
from tests.brokers import servers
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.nats_server import NatsServer, nats_command
from tests.brokers.rabbitmq_server import RabbitmqServer, skip_without_rabbitmq
from tests.brokers.running import Process
from tests.brokers.suspending import suspend
from tests.chaos.archived import check_marked, read_archive
from tests.chaos.rig import FAST_BACKOFF, end_after_all, load_and_witness, repetitions, running
from tests.waiting import until

pytestmark = pytest.mark.broker

RATE = 300  # messages a second
MAX_PAUSE = 1.0  # seconds between two faults
MAPPING = """\
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, {backoff}}}
  middle: {{{middle}, {backoff}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, {backoff}}}
routes:
  there:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: middle, template: "mid{separator}{{rest...}}"}}
  back:
    from: {{endpoint: middle, pattern: "mid{separator}{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
"""
CONFIG = f"""\
gateway: {{{{name: test}}}}
{MAPPING}archive: {{{{path: {{folder}}/archive}}}}
spool: {{{{path: {{folder}}/spool}}}}
"""
ADDED_ROUTE = """\
  added:
    from: {endpoint: source, pattern: "added/{rest...}"}
    to: {endpoint: target, template: "added/{rest...}"}
"""


class Broker(Protocol):
    """A broker process that tests end, freeze and start again."""

    @property
    def settings(self) -> str: ...

    def start(self) -> None: ...
    def kill(self) -> None: ...
    def freeze(self) -> None: ...
    def thaw(self) -> None: ...


class JmsBroker:
    """ActiveMQ with durable topics, started again when it ends unasked, as by a supervisor.

    It ends with a ConcurrentModificationException in `startAllConnectors`, seen once in 200 starts,
    when clients connect while it starts. It listens by then.
    """

    def __init__(self, folder: Path) -> None:
        self._broker = ActiveMq(folder)
        self._lock = threading.RLock()  # one start or kill at a time
        self.freeze, self.thaw = self._broker.freeze, self._broker.thaw

    def start(self) -> None:
        with self._lock:
            self._broker.start()
            threading.Thread(
                target=self._supervise, args=(self._broker.process,), daemon=True
            ).start()

    def kill(self) -> None:
        with self._lock:
            self._broker.kill()

    def _supervise(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        with self._lock:
            if self._broker.process is process:  # nobody killed it
                self._broker.kill()
                self.start()

    @property
    def settings(self) -> str:
        jars = ", ".join(client_jars())
        return (
            f"kind: jms, classpath: [{jars}], factory: {FACTORY}, urls: ['{self._broker.url}'],"
            " client_id: chaos, durable: 'chaos-{pattern}', answer_timeout: 5"
        )


class OurBroker:
    """`gateway broker smf` or `gateway broker yami4` as a process. Mutable."""

    def __init__(self, arguments: list[str], settings: str) -> None:
        self.port = free_port()
        self._arguments = [each.format(port=self.port) for each in arguments]
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> str:
        return self._settings.format(port=self.port)

    def start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-m", "gateway", "broker", *self._arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(self._answers)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        assert self._process is not None
        suspend(self._process)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


def smf(folder: Path) -> OurBroker:
    settings = "kind: solace, url: 'tcp://127.0.0.1:{port}', keepalive: 0.5, answer_timeout: 5"
    return OurBroker(["smf", "--port", "{port}", "--store", str(folder / "store")], settings)


def yami4(folder: Path) -> OurBroker:
    del folder
    settings = "kind: yami4, url: 'tcp://127.0.0.1:{port}', heartbeat: 1, answer_timeout: 2"
    listen = ["--listen", "tcp://127.0.0.1:{port}", "--max-client-queue", "100000"]
    return OurBroker(["yami4", *listen], settings)


class Nats(NatsServer):
    """A nats-server with JetStream, and a stream for what passes."""

    @property
    def settings(self) -> str:
        return (
            f"kind: nats, url: '{self.url}', stream: MID, create_stream: true, subjects: ['mid.>'],"
            " keepalive: 0.5, answer_timeout: 2"
        )


def nats(folder: Path) -> Broker:
    command = nats_command()
    home = folder / "nats"
    home.mkdir()
    return Nats(command, home, ())


class Rabbitmq(RabbitmqServer):
    """A node with classic queues."""

    @property
    def settings(self) -> str:
        return f"kind: rabbitmq, url: '{self.url}', heartbeat: 1, answer_timeout: 5"


def rabbitmq(folder: Path) -> Broker:
    skip_without_rabbitmq()
    home = folder / "rabbitmq"
    home.mkdir()
    return Rabbitmq(home)


class Amqp(Rabbitmq):
    """A RabbitMQ 4 by AMQP 1.0. Mutable as its base is."""

    @property
    def settings(self) -> str:
        return f"kind: amqp, url: '{self.url}', heartbeat: 2, answer_timeout: 5"


def amqp(folder: Path) -> Broker:
    servers.required(PROGRAM, servers.current())
    home = folder / "rabbitmq-4"
    home.mkdir()
    # it notices a frozen client of AMQP 1.0 after four times as many seconds
    return Amqp(home, suite=servers.current(), more=["heartbeat = 1"])


AMQP = pytest.param(amqp, ".", id="amqp", marks=pytest.mark.nightly)
RABBITMQ = pytest.param(rabbitmq, ".", id="rabbitmq", marks=pytest.mark.nightly)
NATS = pytest.param(nats, ".", id="nats")
JMS = pytest.param(JmsBroker, ".", id="jms", marks=pytest.mark.nightly)  # two brokers of Java
NATS_LATER = pytest.param(nats, ".", id="nats", marks=pytest.mark.nightly)
SOLACE = pytest.param(smf, "/", id="solace", marks=pytest.mark.nightly)


AWAY = 60  # seconds


@contextmanager
def started(broker: Broker) -> Iterator[Broker]:
    broker.start()
    try:
        yield broker
    finally:
        broker.thaw()
        broker.kill()


def write_config(
    folder: Path, broker: Broker, separator: str, source: int, target: int, more: str = ""
) -> Path:
    text = CONFIG.format(
        source=source, middle=broker.settings, target=target, separator=separator, folder=folder,
        backoff=FAST_BACKOFF,
    )  # fmt: skip
    file = folder / "gateway.yaml"
    file.write_text(text.replace("archive: {", f"{more}archive: {{"))
    return file


def connected(gateway: Process) -> None:
    for endpoint, side in [("middle", "source"), ("middle", "sink"), ("target", "sink")]:
        gateway.wait_for("connected", endpoint=endpoint, side=side)


@repetitions(3, 30)
@pytest.mark.parametrize(("make", "separator"), [JMS, SOLACE, NATS, RABBITMQ, AMQP])
def test_kills_of_gateway_and_broker_lose_no_message(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    make: Callable[[Path], Broker],
    separator: str,
    times: int,
) -> None:
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    source, target = start_mosquitto(), start_mosquitto()
    tick = threading.Event()
    with started(make(tmp_path)) as broker:
        config = write_config(tmp_path, broker, separator, source.port, target.port)
        with load_and_witness(source.port, target.port, RATE) as (load, witness):
            with running(config) as gateway:  # sessions and queues exist from now on
                connected(gateway)
                load.start()
            for number in range(times):
                with running(config, target=False) as gateway:
                    tick.wait(chance.uniform(0, MAX_PAUSE))
                    if number % 2:
                        broker.kill()
                        tick.wait(chance.uniform(0, MAX_PAUSE))
                        broker.start()
                        tick.wait(chance.uniform(0, MAX_PAUSE))
            with running(config) as gateway:
                end_after_all(gateway, load, witness)

    check_marked(read_archive(tmp_path), witness.duplicates)


@repetitions(None, 30)
def test_nats_and_the_gateway_killed_at_once_mark_every_double(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    """The server forgets its last deliveries, and the gateway the rows it had not written."""
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    source, target = start_mosquitto(), start_mosquitto()
    tick = threading.Event()
    with started(nats(tmp_path)) as broker:
        config = write_config(tmp_path, broker, ".", source.port, target.port)
        with load_and_witness(source.port, target.port, RATE) as (load, witness):
            with running(config) as gateway:
                connected(gateway)
                load.start()
            for _ in range(times):
                with running(config) as gateway:
                    tick.wait(chance.uniform(0, MAX_PAUSE))
                    broker.kill()
                broker.start()
            with running(config) as gateway:
                end_after_all(gateway, load, witness)

    check_marked(read_archive(tmp_path), witness.duplicates)


@repetitions(None, 20)
@pytest.mark.parametrize(
    ("make", "separator"),
    [JMS, SOLACE, NATS_LATER, RABBITMQ, AMQP, pytest.param(yami4, ".", id="yami4")],
)
def test_freezes_of_the_broker_and_reloads_lose_no_message(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    make: Callable[[Path], Broker],
    separator: str,
    times: int,
) -> None:
    """A frozen YAMI4 broker keeps its connections; one that ends forgets its subscribers."""
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    source, target = start_mosquitto(), start_mosquitto()
    tick = threading.Event()
    with started(make(tmp_path)) as broker:
        config = write_config(tmp_path, broker, separator, source.port, target.port)
        with (
            load_and_witness(source.port, target.port, RATE) as (load, witness),
            running(config) as gateway,
        ):
            connected(gateway)
            load.start()
            for number in range(times):
                broker.freeze()
                tick.wait(chance.uniform(0, MAX_PAUSE))
                broker.thaw()
                more = "" if number % 2 else ADDED_ROUTE
                write_config(tmp_path, broker, separator, source.port, target.port, more)
                gateway.process.send_signal(signal.SIGHUP)
                gateway.wait_for("reloaded", times=number + 1)
                tick.wait(chance.uniform(0, MAX_PAUSE))
            end_after_all(gateway, load, witness)

    check_marked(read_archive(tmp_path), witness.duplicates)


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("make", "separator", "frozen"),
    [
        pytest.param(smf, "/", False, id="solace-away"),
        pytest.param(smf, "/", True, id="solace-frozen"),
        pytest.param(yami4, ".", True, id="yami4-frozen"),
        pytest.param(nats, ".", False, id="nats-away"),
        pytest.param(nats, ".", True, id="nats-frozen"),
        pytest.param(rabbitmq, ".", True, id="rabbitmq-frozen"),
        pytest.param(amqp, ".", False, id="amqp-away"),
        pytest.param(amqp, ".", True, id="amqp-frozen"),
    ],
)
def test_a_broker_that_is_away_or_frozen_for_long_loses_no_message(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    make: Callable[[Path], Broker],
    separator: str,
    *,
    frozen: bool,
) -> None:
    """Its messages wait in the spool; the YAMI4 broker keeps nothing when it ends."""
    source, target = start_mosquitto(), start_mosquitto()
    tick = threading.Event()
    with started(make(tmp_path)) as broker:
        config = write_config(tmp_path, broker, separator, source.port, target.port)
        with (
            load_and_witness(source.port, target.port, RATE) as (load, witness),
            running(config) as gateway,
        ):
            connected(gateway)
            load.start()
            tick.wait(MAX_PAUSE)
            (broker.freeze if frozen else broker.kill)()
            tick.wait(AWAY)
            (broker.thaw if frozen else broker.start)()
            tick.wait(MAX_PAUSE)
            end_after_all(gateway, load, witness)

    check_marked(read_archive(tmp_path), witness.duplicates)
