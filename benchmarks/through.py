"""Measures messages/s through the gateway with its archive: MQTT to another system and back.

This process is the load and uses the gateway's endpoints; the gateway is a separate process. Every
message must arrive. Before that, both sides are measured bare: the same process with one broker
and no gateway. The slower side is the highest rate that a gateway can reach.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.columns import printed_rows
from benchmarks.processor import Limiter, no_limit, per_message, relative, seconds, written
from benchmarks.relay import broker, resident
from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Settlement
from gateway.trial.brokers.activemq import FACTORY, client_jars
from gateway.trial.brokers.listening import free_port
from tests.brokers.controlled_activemq import running as running_activemq

Endpoint = TypeVar("Endpoint", Sink, Source)
TOPICS = 1000
BATCH = 500
MAX_IN_FLIGHT = 8  # batches
WARMUP_ROUNDS = 3  # before the measurement, for Java
CONFIRMED = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
CONFIG = """\
gateway: {{name: bench}}
endpoints:
  near: {near}
  far: {far}
routes:
  through:
    from: {{endpoint: {source}, pattern: "{pattern}"}}
    to: {{endpoint: {target}, template: "{template}"}}
archive: {{path: {archive}}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--systems", nargs="*", default=["yami4", "jms", "solace"])
    args = parser.parse_args()
    with printed_rows() as add:
        for system in args.systems:
            for direction in ("to", "from"):
                add(measure(system, direction, args.messages))


def measure(system: str, direction: str, number: int, limit: Limiter = no_limit) -> dict[str, Any]:
    """Measure one path and its bare sides.

    `us` is the processor time per message in the last round: mosquitto, the other broker, the
    gateway, the load. `cpu` is the gateway's, divided by the mean of both brokers'.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = free_port()
        mosquitto = stack.enter_context(broker(folder, port))
        limit(mosquitto.pid)
        near = MqttSettings(name="near", host="127.0.0.1", port=port, version="3.1.1")
        far, yaml, separator, rest, pid = stack.enter_context(other(system, folder))
        limit(pid)
        here = ("src/{rest...}", "/", "/#")
        there = (f"dst{separator}{{rest...}}", separator, f"{separator}{rest}")
        ends: tuple[tuple[EndpointSettings, str, str], tuple[EndpointSettings, str, str]]
        ends = ((near, "near", "src/"), (far, "far", f"dst{separator}"))
        first, last = ends if direction == "to" else ends[::-1]
        patterns = (here[0], there[0]) if direction == "to" else (there[0], here[0])
        config = folder / "bench.yaml"
        config.write_text(
            CONFIG.format(
                near=f"{{kind: mqtt, host: 127.0.0.1, port: {port}, version: '3.1.1'}}",
                far=yaml,
                source=first[1],
                target=last[1],
                pattern=patterns[0],
                template=patterns[1],
                archive=folder / "archive",
            )
        )
        alone = {
            "near": bare(near, "src/", here[2], number),
            "far": bare(far, f"dst{separator}", there[2], number),
        }
        end = here if direction == "from" else there
        listen = [Subscription(f"{last[2][:-1]}{end[2]}")]
        source = stack.enter_context(opened(make_source(last[0], listen, instance="bench")))
        log = stack.enter_context((folder / "log").open("w"))
        gateway = subprocess.Popen(  # noqa: S603  # a fixed command
            [sys.executable, "-m", "gateway", "run", str(config)], stderr=log, process_group=0
        )
        stack.callback(gateway.wait, 20)
        stack.callback(gateway.terminate)
        limit(gateway.pid)
        wait_until_connected(folder / "log")
        sink = stack.enter_context(opened(make_sink(first[0], instance="bench")))
        pids = [mosquitto.pid, pid, gateway.pid, os.getpid()]
        rate, lost, used = drive(sink, source, first[2], number, pids)
        memory = resident(gateway.pid)
    return {
        "path": f"mqtt {direction} {system}",
        "messages_per_s": round(rate),
        "bare_mqtt_per_s": round(alone["near"]),
        "bare_other_per_s": round(alone["far"]),
        "x slower end": round(rate / min(alone.values()), 2),
        "lost": lost,
        "gateway_mb": memory,
        "us": written(used),
        "cpu": relative(*used[:3]),
    }


def bare(settings: EndpointSettings, prefix: str, rest: str, number: int) -> float:
    """Return the messages per second through the broker of one side, without a gateway."""
    listen = [Subscription(f"{prefix[:-1]}{rest}")]
    with (
        opened(make_source(settings, listen, instance="bare")) as source,
        opened(make_sink(settings, instance="bare")) as sink,
    ):
        rate, lost, _ = drive(sink, source, prefix, number)
    assert not lost, f"{settings.name}: {lost} messages lost"
    return rate


def drive(
    sink: Sink, source: Source, prefix: str, number: int, pids: Sequence[int] = ()
) -> tuple[float, int, tuple[float, ...]]:
    """Return the rate and the processor time per message of `pids`, both of the last round.

    The second value is the number of lost messages of all rounds.
    """
    warm = [send_and_collect(sink, source, prefix, number) for _ in range(WARMUP_ROUNDS)]
    before = [*map(seconds, pids)]
    rate, missing = send_and_collect(sink, source, prefix, number)
    used = per_message(before, [*map(seconds, pids)], number)
    return rate, missing + sum(each for _, each in warm), used


def send_and_collect(sink: Sink, source: Source, prefix: str, number: int) -> tuple[float, int]:
    """Return the messages per second from the first sent to the last received, and the losses."""
    started = time.perf_counter()
    feeder = threading.Thread(target=feed, args=(sink, prefix, number), daemon=True)
    feeder.start()
    missing = number - len(collect(source, number))
    return number / (time.perf_counter() - started), missing


@contextmanager
def other(system: str, folder: Path) -> Iterator[tuple[EndpointSettings, str, str, str, int]]:
    """Run the other broker; yield its settings, YAML, separator, rest wildcard and process id."""
    if system == "yami4":
        with broker_process("yami4", "--max-client-queue", "1000000") as (url, pid):
            yield Yami4Settings(name="far", url=url), f"{{kind: yami4, url: {url}}}", ".", "*", pid
    elif system == "jms":
        with running_activemq(folder) as running:
            jars = ", ".join(client_jars())
            facts = f"factory: {FACTORY}, urls: ['{running.url}']"
            yield (
                running.settings(name="far"),
                f"{{kind: jms, dialect: ems, classpath: [{jars}], {facts}}}",
                ".",
                ">",
                running.pid,
            )
    else:
        with broker_process("smf") as (url, pid):
            settings = SolaceSettings(name="far", url=url, username="u")
            yield settings, f"{{kind: solace, url: '{url}', username: u}}", "/", ">", pid


@contextmanager
def broker_process(system: str, *options: str) -> Iterator[tuple[str, int]]:
    """Run `gateway broker` as a process; yield its URL and process id."""
    command = [sys.executable, "-m", "gateway", "broker", system, *options]
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, process_group=0
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1], process.pid
        finally:
            process.terminate()


@contextmanager
def opened(endpoint: Endpoint) -> Iterator[Endpoint]:
    # In a thread that only opens: one that receives would also read the answers of the sink.
    with ThreadPoolExecutor() as threads:
        threads.submit(endpoint.open).result()
    try:
        yield endpoint
    finally:
        endpoint.close()


def feed(sink: Sink, prefix: str, number: int) -> None:
    slots = threading.Semaphore(MAX_IN_FLIGHT)

    def settled(_: Sequence[Settlement]) -> None:
        slots.release()

    payload = bytes(100)
    names = [f"{prefix}{topic}" for topic in range(TOPICS)]
    for start in range(0, number, BATCH):
        slots.acquire()
        batch = [
            Message(names[i % TOPICS], payload, CONFIRMED)
            for i in range(start, min(start + BATCH, number))
        ]
        try:
            sink.send(batch, settled)
        except NotConnectedError:  # Ctrl-C; else the rest counts as lost
            return


def collect(source: Source, number: int) -> list[str]:
    arrived: list[str] = []
    quiet = 0
    while len(arrived) < number and quiet < 20:  # noqa: PLR2004  # seconds without a message
        batch = source.receive(1.0)
        if batch is None:
            quiet += 1
            continue
        quiet = 0
        arrived += [message.address for message in batch.messages]
        batch.settle([ACCEPTED] * len(batch.messages))
    return arrived


def wait_until_connected(log: Path) -> None:
    deadline = time.monotonic() + 30
    while log.read_text().count('"connected"') < 2:  # noqa: PLR2004  # source and sink
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


if __name__ == "__main__":
    main()
