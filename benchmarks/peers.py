"""Measures the gateway and what a user would pick instead, in one table.

The systems are MQTT, NATS, RabbitMQ and Kafka.

    python -m benchmarks.peers [--messages N] [--systems NAME ...] [--relays NAME ...]

Messages have 100 bytes, an acknowledgement, and 1,000 names. A row has the rate; the median latency
at 1,000 messages/s; the relay's processor time for a message, in microseconds; its resident memory;
and how many of 5,000 messages it loses and doubles when `kill -9` ends it in their middle at
1,000/s, and it is started again at once. A bridge and a shovel are parts of a broker: they have no
processor time and no end of their own. mq-bridge (`pip install mq-bridge`) and Node-RED
(`benchmarks.node_red`) are measured where they are installed; mq-bridge sends to one fixed name.
This process is the load, with the gateway's endpoints. Compare only ratios within one run.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, Final

import pika

from benchmarks import node_red
from benchmarks.columns import printed_rows
from benchmarks.processor import seconds
from benchmarks.relay import BRIDGE, Shape, broker, relay_command, resident
from benchmarks.streams import HERE, MISSING, QUEUE, RUN, Ends, client, gateway
from benchmarks.through import CONFIRMED, TOPICS, opened
from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Settlement
from gateway.trial.brokers.listening import free_port

SIZE: Final = 100  # bytes of a payload
HEAD: Final = struct.Struct(">Qd")  # number and time
PACE: Final = 1_000  # messages a second
PACED: Final = 5_000  # messages at that pace
MAX_WAITING: Final = 4_000  # messages that were sent and have not arrived
BATCH: Final = 500
QUIET: Final = 10.0  # seconds without a message, after which the rest is lost
KILL_QUIET: Final = 45.0  # after a kill: a server waits 30 s until it delivers again (JetStream)
START: Final = 60.0  # seconds for a relay to start
RELAYS: Final = {
    "mqtt": ("mosquitto's bridge", "Node-RED", "paho", "mq-bridge", "gateway"),
    "nats": ("nats-py", "mq-bridge", "gateway"),
    "rabbitmq": ("shovel", "mq-bridge", "gateway"),
    "kafka": ("confluent-kafka", "mq-bridge", "gateway"),
}
WITHIN_BROKER: Final = {"mosquitto's bridge", "shovel"}


@dataclass(slots=True)
class Arrivals:
    """The messages of one run that have arrived, by number. Mutable: one thread adds."""

    seen: dict[int, int] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    last: float = field(default_factory=time.perf_counter)

    def add(self, payload: bytes) -> None:
        number, sent = HEAD.unpack_from(payload)
        self.last = time.perf_counter()
        self.seen[number] = self.seen.get(number, 0) + 1
        self.latencies.append(self.last - sent)

    @property
    def doubled(self) -> int:
        return sum(self.seen.values()) - len(self.seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=30_000)
    parser.add_argument("--systems", nargs="*", default=list(RELAYS), choices=list(RELAYS))
    parser.add_argument("--relays", nargs="*", help="only these")
    args = parser.parse_args()
    with printed_rows() as add:
        for system in args.systems:
            for relay in RELAYS[system]:
                if args.relays and relay not in args.relays:
                    continue
                if why := _missing(system, relay):
                    print(f"{system}, {relay}: skipped: {why}", flush=True)
                    continue
                add(measure(system, relay, args.messages))


def _missing(system: str, relay: str) -> str | None:
    if relay == "Node-RED" and node_red.program() is None:
        return "node-red: not found in PATH; set NODE_RED to the program"
    if relay == "mq-bridge" and find_spec("mq_bridge") is None:
        return "not installed: pip install mq-bridge"
    return MISSING[system]() if system in MISSING else None


def measure(system: str, relay: str, number: int) -> dict[str, Any]:
    """Return the row of one relay between two brokers of one system."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ends = stack.enter_context(_ends(system, folder, relay))
        arrived, process = ends.arrived, None
        if relay == "shovel":
            ends.start_shovel()
            arrived = Subscription("src.#")
        elif relay not in WITHIN_BROKER:
            process = Relay(_command(system, relay, folder, ends))
            stack.callback(process.kill)
        source = stack.enter_context(opened(make_source(ends.far, [arrived], instance="bench")))
        sink = stack.enter_context(opened(make_sink(_plain(ends.near), instance="bench")))
        load = Load(sink, source, "src/" if system == "mqtt" else f"src{ends.mark}")
        load.wait_for_relay()
        load.run(number)  # warm
        before = process.seconds if process else 0.0
        began = time.perf_counter()
        closed = load.run(number)
        rate = len(closed.seen) / (closed.last - began)
        row: dict[str, Any] = {"path": system, "relay": relay, "messages_per_s": round(rate)}
        if process:
            row["us"] = round(1e6 * (process.seconds - before) / number, 1)
        paced = load.run(PACED, pace=PACE)
        row["p50_ms"] = round(1e3 * median(paced.latencies), 2)
        row["lost"] = number + PACED - len(closed.seen) - len(paced.seen)
        row["doubled"] = closed.doubled + paced.doubled
        if process:
            row["rss_mb"] = process.resident
            killed = load.run(
                PACED, pace=PACE, in_the_middle=process.kill_and_start, quiet=KILL_QUIET
            )
            row["lost by a kill"] = PACED - len(killed.seen)
            row["doubled by a kill"] = killed.doubled
    return row


def _plain(near: EndpointSettings) -> EndpointSettings:
    """Return settings whose sink writes no header of its own: mq-bridge would send it on.

    A stream refuses a message with the header that names another stream.
    """
    if isinstance(near, NatsSettings):
        return replace(near, stream="", create_stream=False, subjects=())
    return near


class Relay:
    """A relay as a process that is started again after a kill."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            self._command, stderr=subprocess.DEVNULL, process_group=0
        )

    @property
    def seconds(self) -> float:
        """Processor time so far."""
        return seconds(self._process.pid)

    @property
    def resident(self) -> float:
        return resident(self._process.pid)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def kill_and_start(self) -> None:
        self.kill()
        self._start()


class Load:
    """Sends numbered messages to one broker, and counts what arrives at the other.

    Mutable: numbers go on over all runs, so that what comes late counts in no later run.
    """

    def __init__(self, sink: Sink, source: Source, prefix: str) -> None:
        self._sink, self._source = sink, source
        self._names = [f"{prefix}{topic}" for topic in range(TOPICS)]
        self._next = 0
        self._room = threading.Semaphore(MAX_WAITING // BATCH)  # of batches without an answer

    def wait_for_relay(self) -> None:
        """Send single messages until one arrives, and then until none is on its way."""
        until = time.monotonic() + START
        while time.monotonic() < until:
            if self.run(1, quiet=0.5).seen:
                self._receive(Arrivals(), 0, lambda: True, 1.0)
                return
        raise SystemExit("no message came through: is the relay up?")

    def run(
        self,
        number: int,
        pace: float = 0.0,
        in_the_middle: Callable[[], None] = lambda: None,
        quiet: float = QUIET,
    ) -> Arrivals:
        """Send `number` messages, and return what arrives until `quiet` seconds without any.

        Without a `pace` in messages/s, a few thousand wait at most. `in_the_middle` is called when
        half of them are sent.
        """
        found, first = Arrivals(), self._next
        self._next += number
        sent = threading.Event()
        args = (found, first, number, pace, in_the_middle, sent)
        threading.Thread(target=self._send, args=args, daemon=True).start()
        self._receive(found, first, sent.is_set, quiet, number)
        found.seen = {at: count for at, count in found.seen.items() if at >= first}
        return found

    def _send(  # one run
        self,
        found: Arrivals,
        first: int,
        number: int,
        pace: float,
        in_the_middle: Callable[[], None],
        sent: threading.Event,
    ) -> None:
        pad, began, half = bytes(SIZE - HEAD.size), time.perf_counter(), first + number // 2
        at = first
        while at < first + number:
            if pace:
                due = min(first + number, first + int((time.perf_counter() - began) * pace) + 1)
            else:
                due = min(first + number, at + BATCH, first + len(found.seen) + MAX_WAITING)
            if due <= at:
                time.sleep(0.0005)
                continue
            now = time.perf_counter()
            batch = [
                Message(self._names[each % TOPICS], HEAD.pack(each, now) + pad, CONFIRMED)
                for each in range(at, due)
            ]
            if at <= half < due:
                in_the_middle()
            self._room.acquire()
            try:
                self._sink.send(batch, self._answered)
            except NotConnectedError:  # Ctrl-C; else the rest counts as lost
                break
            at = due
        found.last = time.perf_counter()
        sent.set()

    def _answered(self, _: Sequence[Settlement]) -> None:
        self._room.release()

    def _receive(
        self,
        found: Arrivals,
        first: int,
        all_sent: Callable[[], bool],
        quiet: float,
        number: int = -1,
    ) -> None:
        """Count what arrives from `first` on, until all has come or it is quiet."""
        while not (all_sent() and len(found.seen) == number):
            batch = self._source.receive(0.1)
            if batch is None:
                if all_sent() and time.perf_counter() - found.last >= quiet:
                    return
                continue
            for message in batch.messages:
                payload = message.payload
                if isinstance(payload, bytes) and HEAD.unpack_from(payload)[0] >= first:
                    found.add(payload)
            batch.settle([ACCEPTED] * len(batch.messages))


@contextmanager
def _ends(system: str, folder: Path, relay: str) -> Iterator[Ends]:
    run = _mqtt_ends(folder, relay) if system == "mqtt" else RUN[system](folder)
    with run as ends:
        yield ends


@contextmanager
def _mqtt_ends(folder: Path, relay: str) -> Iterator[Ends]:
    """Run two mosquittos, the second one with a bridge if that is the relay."""
    ports = [free_port(), free_port()]
    extra = BRIDGE.format(source=ports[0], qos=1) if relay in WITHIN_BROKER else ""
    with broker(folder, ports[0]), broker(folder, ports[1], extra):
        near, far = (
            MqttSettings(name=name, host="127.0.0.1", port=port, version="3.1.1")
            for name, port in zip(("near", "far"), ports, strict=True)
        )
        yield Ends(near, far, Subscription("dst/#"), ("", ""), (near.address, far.address))


def _command(system: str, relay: str, folder: Path, ends: Ends) -> list[str]:
    if relay == "mq-bridge":
        if isinstance(ends.near, RabbitmqSettings):
            _make_plain_queue(ends.near)
        route = json.dumps(_mq_bridge_route(ends))
        return [sys.executable, str(HERE / "mq_bridge_relay.py"), route]
    if system == "mqtt":
        assert isinstance(ends.near, MqttSettings)
        assert isinstance(ends.far, MqttSettings)
        return relay_command(relay.lower(), folder, ends.near.port, ends.far.port, Shape(1))
    return gateway(folder, ends) if relay == "gateway" else client(relay, ends)


def _make_plain_queue(near: RabbitmqSettings) -> None:
    """Replace the queue of the source by one without arguments: mq-bridge declares it so."""
    connection = pika.BlockingConnection(pika.URLParameters(near.url))
    channel = connection.channel()
    channel.queue_delete(QUEUE)
    channel.queue_declare(QUEUE, durable=True)
    channel.queue_bind(QUEUE, near.exchange, "src.#")
    connection.close()


def _mq_bridge_route(ends: Ends) -> dict[str, object]:
    """Return its route at QoS 1, with a durable consumer, and its own size of a batch."""
    near, far = ends.near, ends.far
    if isinstance(near, MqttSettings) and isinstance(far, MqttSettings):
        each = {"qos": 1, "session_expiry_interval": 3_600}
        start, end = (f"tcp://127.0.0.1:{settings.port}" for settings in (near, far))
        return {
            "input": {"mqtt": {**each, "url": start, "topic": "src/#", "client_id": "bench-in"}},
            "output": {"mqtt": {**each, "url": end, "topic": "dst/all", "client_id": "bench-out"}},
        }
    if isinstance(near, NatsSettings) and isinstance(far, NatsSettings):
        return {
            "input": {"nats": {"url": near.url, "stream": near.stream, "subject": "src.>"}},
            "output": {"nats": {"url": far.url, "stream": far.stream, "subject": "dst.all"}},
        }
    if isinstance(near, KafkaSettings):
        url = near.bootstrap_servers[0]
        return {
            "input": {"kafka": {"url": url, "topic": "src", "group_id": "relay"}},
            "output": {"kafka": {"url": url, "topic": "dst"}},
        }
    assert isinstance(near, RabbitmqSettings)
    assert isinstance(far, RabbitmqSettings)
    to = {"exchange": far.exchange, "queue": "dst.all", "no_declare_queue": True}
    return {
        "input": {"amqp": {"url": near.url, "queue": QUEUE}},
        "output": {"amqp": {"url": far.url, **to}},
    }


if __name__ == "__main__":
    main()
