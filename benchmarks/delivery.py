"""Measures the cost of settlement, spool and archive: mosquitto -> gateway -> mosquitto.

(a) The rate of MQTT QoS 1 with spool and archive, relative to the same route with neither, in
alternating runs. (b) A spool of many messages at a start: the time until its first delivery, and
the drain rate relative to the route. (c) The latency at 1,000 messages/s with durable settlement.
Compare only ratios within one run.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from benchmarks.relay import HERE, broker, resident, run_load
from benchmarks.through import BATCH, collect, feed, opened
from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.outcome import ACCEPTED
from gateway.runtime.outbound.spool_db import FILE_NAME
from gateway.trial.brokers.listening import free_port

CONFIG = """\
gateway: {{name: bench}}
endpoints:
  from: {{kind: mqtt, host: 127.0.0.1, port: {source}, {quick}}}
  to: {{kind: mqtt, host: 127.0.0.1, port: {target}, {quick}}}
routes:
  relay:
    from: {{endpoint: from, pattern: "src/{{rest...}}"}}
    to: {{endpoint: to, template: "dst/{{rest...}}"}}
"""
QUICK = "backoff_min: 0.05, backoff_max: 0.2"
DURABLE = "archive: {{path: {folder}/archive}}\nspool: {{path: {folder}/spool}}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="number in one round of (a)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds of (a)")
    parser.add_argument("--spooled", type=int, default=1_000_000, help="number of messages of (b)")
    args = parser.parse_args()
    report("relay", relayed(args.messages, args.rounds))
    report("latency", latency())
    report("spool", recovered(args.spooled))


def report(name: str, figures: dict[str, object]) -> None:
    print(json.dumps({"measured": name, **figures}), flush=True)


def relayed(messages: int, rounds: int) -> dict[str, object]:
    """Return the messages per second with both and with neither, in alternating rounds."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(rounds):
        for durable, found in rates.items():
            with bridge(durable=durable) as load:
                figures = run_load([*load, "--messages", str(messages)])
            assert not figures["lost"], figures
            found.append(float(str(figures["messages_per_s"])))
    ratios = [one / other for one, other in zip(rates[True], rates[False], strict=True)]
    return {
        "durable_per_s": rates[True],
        "plain_per_s": rates[False],
        "ratio": round(statistics.median(ratios), 2),
        "goal": 0.8,
    }


def latency() -> dict[str, object]:
    """Return the latency in ms at 1,000 messages/s, and the duration of a single flush."""
    figures: dict[str, object] = {}
    for durable in (True, False):
        with bridge(durable=durable) as load:
            paced = run_load([*load, "--rate", "1000", "--messages", "10000", "--warmup", "1000"])
        figures["durable_ms" if durable else "plain_ms"] = paced["latency_ms"]
    return {**figures, "bare_flush_ms": flushes(1_000), "goal_durable_p99_ms": 10}


def flushes(number: int) -> dict[str, float]:
    """Return the duration of a flush of 4 KiB in the temporary folder, in ms."""
    spent: list[float] = []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(number):
            started = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            spent.append((time.perf_counter() - started) * 1e3)
    spent.sort()
    return {name: round(spent[int(number * at)], 2) for name, at in (("p50", 0.5), ("p99", 0.99))}


def recovered(messages: int) -> dict[str, object]:
    """Kill a gateway with a spool of `messages`, and measure how the next one drains it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, target = free_port(), free_port()
        stack.enter_context(broker(folder, source))
        sink = stack.enter_context(opened(make_sink(at(source), instance="load")))
        fill_rate, memory = fill(folder, source, target, sink, messages)
        stack.enter_context(broker(folder, target))
        witness = make_source(at(target), [Subscription("dst/#")], instance="witness")
        witness = stack.enter_context(opened(witness))
        started = time.perf_counter()
        stack.enter_context(gateway(folder, source, target, durable=True))
        first = wait_for_first(witness)
        waited = time.perf_counter() - started
        arrived = first + len(collect(witness, messages - first))
        drain_rate = (arrived - first) / (time.perf_counter() - started - waited)
        number = max(messages // 10, BATCH)
        started = time.perf_counter()
        threading.Thread(target=feed, args=(sink, "src/", number), daemon=True).start()
        direct = len(collect(witness, number))
        route_rate = direct / (time.perf_counter() - started)
    return {
        "messages": messages,
        "lost": messages - arrived + number - direct,
        "fill_per_s": round(fill_rate),
        "fill_mb": memory,
        "first_after_s": round(waited, 2),
        "goal_first_s": 2,
        "drain_per_s": round(drain_rate),
        "route_per_s": round(route_rate),
        "drain_x_route": round(drain_rate / route_rate, 2),
    }


def fill(folder: Path, source: int, target: int, sink: Sink, messages: int) -> tuple[float, float]:
    """Fill a spool and kill its gateway; return the rate and the resident memory in MB."""
    with gateway(folder, source, target, durable=True) as process:
        wait_until(lambda: subscribed(folder))
        started = time.perf_counter()
        feed(sink, "src/", messages)
        wait_until(lambda: spooled(folder) >= messages)
        rate = messages / (time.perf_counter() - started)
        memory = resident(process.pid)
        time.sleep(1)  # until the spooled messages are settled at their source
        process.kill()
    return rate, memory


def at(port: int) -> MqttSettings:
    return MqttSettings(host="127.0.0.1", port=port, receive_window=20_000)


def wait_for_first(source: Source) -> int:
    """Return the number of messages of the first batch."""
    while (batch := source.receive(0.01)) is None:
        pass
    batch.settle([ACCEPTED] * len(batch.messages))
    return len(batch.messages)


def subscribed(folder: Path) -> bool:
    return '"side": "source"' in (folder / "log").read_text()


def spooled(folder: Path) -> int:
    with closing(sqlite3.connect(f"file:{folder / 'spool' / FILE_NAME}?mode=ro", uri=True)) as file:
        (count,) = file.execute("SELECT COALESCE(SUM(messages), 0) FROM batches").fetchone()
    return int(count)


def wait_until(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.1)


@contextmanager
def bridge(*, durable: bool) -> Iterator[list[str]]:
    """Run a relay; yield the command of its load."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, target = free_port(), free_port()
        for port in (source, target):
            stack.enter_context(broker(folder, port))
        stack.enter_context(gateway(folder, source, target, durable=durable))
        load = [sys.executable, str(HERE / "relay_load.py"), "--from-port", str(source)]
        yield [*load, "--to-port", str(target), "--qos", "1"]


@contextmanager
def gateway(
    folder: Path, source: int, target: int, *, durable: bool
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a relay; its log is a file of the folder."""
    config = folder / "bench.yaml"
    text = CONFIG.format(source=source, target=target, quick=QUICK)
    config.write_text(text + (DURABLE.format(folder=folder) if durable else ""))
    command = [sys.executable, "-m", "gateway", "run", str(config), "--log-format", "json"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=log)  # noqa: S603  # a fixed command
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
