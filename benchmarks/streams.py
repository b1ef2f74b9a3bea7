"""Measures NATS -> X -> NATS, RabbitMQ -> X -> RabbitMQ and Kafka -> X -> Kafka beside peers.

RabbitMQ is measured twice: by AMQP 0-9-1, and a RabbitMQ 4 by AMQP 1.0. The server of Kafka is
noida-db, and the names are keys of one topic.

    python -m benchmarks.streams [--messages N] [--systems NAME ...]

X is the gateway with translation and archive, and the system's yardstick: RabbitMQ's own shovel,
from a durable queue of one vhost to the exchange of another, with confirms; a loop of
python-qpid-proton, which does the same by AMQP 1.0; nats-py in ten lines, from a stream of one
server into a stream of another; or confluent-kafka in twenty, from a topic into another. Messages
are persistent and have 100 bytes. This process is the load, with the gateway's endpoints. Every
message must arrive. Compare only ratios within one run. `us` is the processor time per message of
RabbitMQ's node, which a shovel is a part of, and of the relay, where it is a process.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.columns import printed_rows
from benchmarks.processor import written
from benchmarks.relay import running
from benchmarks.through import drive, opened
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.trial.brokers import nats, rabbitmq
from gateway.trial.brokers.rabbitmq import PROGRAM, RabbitmqNode
from tests.brokers import servers
from tests.brokers.kafka_server import KafkaServer

HERE = Path(__file__).parent
QUEUE = "relay"
CONFIG = """\
gateway: {{name: bench}}
endpoints:
  near: {near}
  far: {far}
routes:
  through:
    from: {{endpoint: near, pattern: "src{mark}{{rest...}}"}}
    to: {{endpoint: far, template: "dst{mark}{{rest...}}"}}
archive: {{path: {archive}}}
"""


def _missing_amqp() -> str:
    proton = "" if find_spec("proton") else "no proton: pip install python-qpid-proton"
    return proton or servers.missing(PROGRAM, servers.current())


def _missing_kafka() -> str:
    absent = [each for each in ("confluent_kafka", "noida_db") if find_spec(each) is None]
    return f"no {' and no '.join(absent)}" if absent else ""


MISSING = {
    "nats": nats.missing, "rabbitmq": rabbitmq.missing, "amqp": _missing_amqp,
    "kafka": _missing_kafka,
}  # fmt: skip
YARDSTICKS = {
    "nats": "nats-py", "rabbitmq": "shovel", "amqp": "proton", "kafka": "confluent-kafka",
}  # fmt: skip
KINDS: dict[str, type[RabbitmqSettings | AmqpSettings]]
KINDS = {"rabbitmq": RabbitmqSettings, "amqp": AmqpSettings}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=30_000)
    parser.add_argument("--systems", nargs="*", default=list(YARDSTICKS), choices=YARDSTICKS)
    args = parser.parse_args()
    with printed_rows() as add:
        for system in args.systems:
            if why := MISSING[system]():
                print(f"{system}: skipped: {why}")
                continue
            yardstick = YARDSTICKS[system]
            add(other := measure(system, yardstick, args.messages))
            own = measure(system, "gateway", args.messages)
            ratio = round(own["messages_per_s"] / other["messages_per_s"], 2)
            add({**own, f"x {yardstick}": ratio})


def measure(system: str, relay: str, number: int) -> dict[str, Any]:
    """Return the rate of one relay, in messages a second, and its losses."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ends = stack.enter_context(RUN[system](folder))
        pids, arrived = list(ends.pids), ends.arrived
        if relay == "shovel":
            ends.start_shovel()
            arrived = Subscription("src.#")  # a shovel leaves the names as they are
        else:
            command = gateway(folder, ends) if relay == "gateway" else client(relay, ends)
            pids.append(stack.enter_context(running(command)).pid)
        source = stack.enter_context(opened(make_source(ends.far, [arrived], instance="bench")))
        sink = stack.enter_context(opened(make_sink(ends.near, instance="bench")))
        rate, lost, used = drive(sink, source, f"src{ends.mark}", number, pids)
    return {
        "path": system,
        "relay": relay,
        "messages_per_s": round(rate),
        "lost": lost,
        "us": written(used),
    }


@dataclass(frozen=True, slots=True)
class Ends:
    """Two brokers, or two parts of one, with what arrives; `yaml` are the gateway's endpoints."""

    near: EndpointSettings
    far: EndpointSettings
    arrived: Subscription
    yaml: tuple[str, str]
    urls: tuple[str, str]
    pids: tuple[int, ...] = ()  # of brokers whose processor time is measured
    start_shovel: Callable[[], None] = lambda: None
    mark: str = "."  # between the first level of a name and the rest


@contextmanager
def nats_ends(folder: Path) -> Iterator[Ends]:
    """Run two servers with a stream each."""
    with ExitStack() as stack:
        ends: list[NatsSettings] = []
        for name, subject in (("NEAR", "src.>"), ("FAR", "dst.>")):
            (folder / name).mkdir()
            url = stack.enter_context(nats.running(folder / name))
            ends.append(NatsSettings(url=url, stream=name, create_stream=True, subjects=(subject,)))
            with opened(make_sink(ends[-1])):  # makes the stream
                pass
        near, far = ends
        yaml = [f"{{kind: nats, url: '{each.url}', stream: {each.stream}}}" for each in ends]
        yield Ends(near, far, Subscription("dst.>"), (yaml[0], yaml[1]), (near.url, far.url))


@contextmanager
def kafka_ends(folder: Path) -> Iterator[Ends]:
    """Run one server with two topics."""
    server = KafkaServer(folder)
    with ExitStack() as stack:
        stack.callback(server.kill)
        server.start()
        for topic in ("src", "dst"):
            server.make_topic(topic)
        near = server.settings
        far = replace(near, client_id="bench", group_id="bench")
        yaml = f"{{kind: kafka, servers: ['{server.url}']}}"
        yield Ends(
            near, far, Subscription("dst:>"), (yaml, yaml), (server.url, server.url),
            mark=":",
        )  # fmt: skip


class _Node(RabbitmqNode):
    """A RabbitMQ 4. Mutable as its base is."""

    def command(self, tool: str) -> list[str]:
        return servers.command(tool, servers.current())


@contextmanager
def rabbitmq_ends(kind: str, folder: Path) -> Iterator[Ends]:
    """Run a node with two vhosts, for endpoints of a kind."""
    make = _Node if kind == "amqp" else RabbitmqNode
    node = make(folder, plugins=("rabbitmq_shovel",), erlang="")
    with ExitStack() as stack:
        stack.callback(node.kill)
        node.start()
        assert node.process is not None
        _ctl(node, "await_startup")  # it listens before
        for vhost in ("near", "far"):
            _ctl(node, "add_vhost", vhost)
            _ctl(node, "set_permissions", "--vhost", vhost, "guest", ".*", ".*", ".*")
        near = KINDS[kind](url=f"{node.url}near", queue=QUEUE)
        far = replace(near, url=f"{node.url}far", queue="bench")
        with opened(make_source(near, [Subscription("src.#")])):  # makes the queue
            pass
        yaml = [f"{{kind: {kind}, url: '{each.url}', queue: {QUEUE}}}" for each in (near, far)]
        yield Ends(
            near, far, Subscription("dst.#"), (yaml[0], yaml[1]), (near.url, far.url),
            (node.process.pid,), partial(_start_shovel, node, near.url, far.url),
        )  # fmt: skip


def _start_shovel(node: RabbitmqNode, near: str, far: str) -> None:
    shovel = {
        "src-protocol": "amqp091", "src-uri": near, "src-queue": QUEUE,
        "dest-protocol": "amqp091", "dest-uri": far, "dest-exchange": "amq.topic",
        "ack-mode": "on-confirm",
    }  # fmt: skip
    _ctl(node, "set_parameter", "--vhost", "near", "shovel", "relay", json.dumps(shovel))


RUN: Final[dict[str, Callable[[Path], AbstractContextManager[Ends]]]] = {
    "nats": nats_ends,
    "rabbitmq": partial(rabbitmq_ends, "rabbitmq"),
    "amqp": partial(rabbitmq_ends, "amqp"),
    "kafka": kafka_ends,
}


def _ctl(node: RabbitmqNode, *arguments: str) -> None:
    done = node.run("rabbitmqctl", "--node", node.name, *arguments)
    assert not done.returncode, done.stdout


def gateway(folder: Path, ends: Ends) -> list[str]:
    """Return the command of the gateway between two ends; names are `src` and `dst` there."""
    config, (near, far) = folder / "bench.yaml", ends.yaml
    config.write_text(CONFIG.format(near=near, far=far, mark=ends.mark, archive=folder / "archive"))
    return [sys.executable, "-m", "gateway", "run", str(config)]


def client(relay: str, ends: Ends) -> list[str]:
    """Return the command of a loop of a client library."""
    program, *options = {
        "nats-py": ["nats_relay.py"], "proton": ["proton_relay.py", QUEUE],
        "confluent-kafka": ["kafka_relay.py"],
    }[relay]  # fmt: skip
    return [sys.executable, str(HERE / program), *ends.urls, *options]


if __name__ == "__main__":
    main()
