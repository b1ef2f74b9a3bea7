"""Measures mosquitto -> relay -> mosquitto for every relay: rate, latency, memory, correctness.

    python -m benchmarks.relay [--shapes NAME ...] [--relays NAME ...] [--messages N]

The relays are mosquitto's bridge (C), Node-RED where it is installed, a paho-mqtt relay in ten
lines, and the gateway with translation and archive. Compare only ratios within one run.
`stolen_cores` is the processor time taken by other machines of the same host, in cores; above a few
hundredths it determines the latencies.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import node_red
from benchmarks.columns import printed_rows
from benchmarks.processor import (
    LOAD_CORES,
    Limiter,
    no_limit,
    per_message,
    relative,
    seconds,
    written,
)
from gateway.trial.brokers.listening import free_port, wait_until_it_listens

HERE = Path(__file__).parent
BROKER_CONFIG = """\
listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages {inflight}
"""
BRIDGE = "connection relay\naddress 127.0.0.1:{source}\ntopic # in {qos} dst/ src/\n"
CONFIG = """\
gateway: {{name: bench}}
endpoints:
  from: {{kind: mqtt, host: 127.0.0.1, port: {source}, version: "{version}", qos: {qos}}}
  to:
    kind: mqtt
    host: 127.0.0.1
    port: {target}
    version: "{version}"
    qos: {qos}
{allow}archive: {{path: {archive}, sync: {sync}}}
routes:
"""
SINGLE_ROUTE = """\
  relay:
    from: {endpoint: from, pattern: "src/{rest...}"}
    to: {endpoint: to, template: "dst/{rest...}"}
"""
FIELD_ROUTE = """\
  relay:
    from: {endpoint: from, pattern: "src/{rest...}"}
    to: {endpoint: to, template: "dst/{payload.site.name}/{rest...}"}
    retained: ignore
"""
TOPIC_ROUTE = """\
  r{n}: {{from: {{endpoint: from, pattern: src/{n}}}, to: {{endpoint: to, template: dst/{n}}}}}
"""
IDLE_ROUTE = """\
  i{n}:
    from: {{endpoint: from, pattern: other/{n}/+}}
    to: {{endpoint: to, template: "idle/{n}/{{1}}"}}
"""
MAX_OUTSTANDING = 4_000  # messages
WARMUP = 500  # messages before the measurement
MAX_OUTSTANDING_BYTES = 64 << 20
MAX_VOLUME = 1 << 30  # bytes of one measurement


@dataclass(frozen=True, slots=True)
class Shape:
    """A measurement: the payload size and the gateway's configuration."""

    qos: int = 1
    size: int = 100
    routes: int = 1  # more than one: a route and a subscription per topic
    topics: int = 1_000
    subscriptions: int = 1  # more than `routes`: the others receive no message
    sync: str = "batch"  # of the archive
    version: str = "3.1.1"  # of MQTT
    inflight: int = 0  # unacknowledged messages that the brokers allow; 0: no limit
    json: bool = False  # payloads are JSON
    field: bool = False  # a field of the JSON is a level of the name

    def messages(self, requested: int) -> int:
        return min(requested, MAX_VOLUME // self.size)

    @property
    def load(self) -> list[str]:
        """Return the arguments of the load."""
        window = max(16, min(MAX_OUTSTANDING, MAX_OUTSTANDING_BYTES // self.size))
        options = {"qos": self.qos, "size": self.size, "topics": self.topics, "window": window}
        options["start-timeout"] = 90
        parts = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        return [*parts, *(["--json"] if self.json else [])]


SHAPES = {
    "qos 1": Shape(1),
    "qos 0": Shape(0),
    "relaxed": Shape(1, sync="interval"),
    "MQTT 5, 20 in flight": Shape(1, version="5", inflight=20),  # the default of mosquitto
    "1 KB": Shape(size=1 << 10),
    "1 KB of JSON": Shape(size=1 << 10, json=True),
    "1 KB of JSON, a field": Shape(size=1 << 10, json=True, field=True),
    "64 KB": Shape(size=1 << 16),
    "1 MB": Shape(size=1 << 20),
    "1,000 routes": Shape(routes=1_000),
    "10 routes": Shape(routes=10, topics=10),
    "10,000 subscriptions": Shape(routes=10, topics=10, subscriptions=10_000),
}
BASIC_SHAPES = ("qos 1", "qos 0")  # the only ones of the slow relays


def main() -> None:
    slow = ["paho", *(["node-red"] if node_red.program() else [])]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--relays", nargs="*", default=["mosquitto", *slow, "gateway"])
    args = parser.parse_args()
    with printed_rows() as add:
        for name in args.shapes:
            yardstick: dict[str, float] = {}
            for relay in args.relays:
                if relay in slow and name not in BASIC_SHAPES:
                    continue
                figures = measure(relay, SHAPES[name], args.messages)
                yardstick[relay] = figures["messages_per_s"] or 0
                against = {
                    f"x {other}": round(yardstick[relay] / rate, 2)
                    for other, rate in yardstick.items()
                    if other != relay and rate
                }
                add({"shape": name, "relay": relay, **figures, **against})


def measure(relay: str, shape: Shape, messages: int, limit: Limiter = no_limit) -> dict[str, Any]:
    """Measure throughput, latency at 1,000 messages/s, and the relay's resident memory.

    `us` is the processor time per message of the throughput: both brokers, the relay, the load.
    `cpu` is the relay's, divided by the mean of both brokers'; a bridge is part of its broker.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, target = free_port(), free_port()
        start = stack.enter_context(broker(folder, source, inflight=shape.inflight))
        extra = BRIDGE.format(source=source, qos=shape.qos) if relay == "mosquitto" else ""
        to = stack.enter_context(broker(folder, target, extra, shape.inflight))
        process = (
            to
            if relay == "mosquitto"
            else stack.enter_context(running(relay_command(relay, folder, source, target, shape)))
        )
        every = dict.fromkeys((start.pid, to.pid, process.pid))  # a bridge is part of its broker
        for pid in every:
            limit(pid)
        load = [sys.executable, str(HERE / "relay_load.py"), "--from-port", str(source)]
        load += ["--to-port", str(target), *shape.load, "--warmup", str(WARMUP)]
        run_load([*load, "--messages", "1000"], limit)  # until all processes are connected
        before, since = stolen(), time.monotonic()
        number = shape.messages(messages)
        spent = _spent(every)
        rate = run_load([*load, "--messages", str(number)], limit)
        used = per_message(spent, _spent(every), number + WARMUP)
        memory = resident(process.pid)
        pace = ["--rate", str(min(1_000, MAX_OUTSTANDING_BYTES // shape.size))]
        paced = run_load([*load, *pace, "--messages", str(shape.messages(5_000))], limit)
        stolen_cores = (stolen() - before) / (time.monotonic() - since)
    return {
        "messages_per_s": rate["messages_per_s"],
        "lost": rate["lost"] + paced["lost"],
        "duplicates": rate["duplicates"] + paced["duplicates"],
        "reordered": rate["reordered"] + paced["reordered"],
        "p50_ms": paced["latency_ms"]["p50"],
        "p99_ms": paced["latency_ms"]["p99"],
        "rss_mb": memory,
        "us": written(used),
        **({} if process is to else {"cpu": relative(*used[:3])}),
        "stolen_cores": round(stolen_cores, 2),
    }


def _spent(pids: Iterable[int]) -> list[float]:
    """Return the processor seconds so far of each process, and of all finished loads."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [*map(seconds, pids), children.ru_utime + children.ru_stime]


def relay_command(relay: str, folder: Path, source: int, target: int, shape: Shape) -> list[str]:
    if relay == "paho":
        ports = [str(source), str(target), str(shape.qos)]
        return [sys.executable, str(HERE / "paho_relay.py"), *ports]
    if relay == "node-red":
        return node_red.command(folder, source, target, shape.qos)
    config = folder / "bench.yaml"
    config.write_text(configuration(shape, source, target, folder / "archive"))
    return [sys.executable, "-m", "gateway", "run", str(config)]


def configuration(shape: Shape, source: int, target: int, archive: Path) -> str:
    """Return the gateway's configuration; the caller may append sections."""
    head = CONFIG.format(
        source=source,
        target=target,
        version=shape.version,
        qos=shape.qos,
        archive=archive,
        sync=shape.sync,
        allow='    allow: ["dst/#"]\n' if shape.field else "",
    )
    routes = (
        [FIELD_ROUTE if shape.field else SINGLE_ROUTE]
        if shape.routes == 1
        else [TOPIC_ROUTE.format(n=n) for n in range(shape.routes)]
    )
    idle = [IDLE_ROUTE.format(n=n) for n in range(shape.subscriptions - shape.routes)]
    return head + "".join([*routes, *idle])


@contextmanager
def broker(
    folder: Path, port: int, extra: str = "", inflight: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    config = folder / f"{port}.conf"
    config.write_text(BROKER_CONFIG.format(port=port, inflight=inflight) + extra)
    with running(["/usr/sbin/mosquitto", "-c", str(config)]) as process:
        wait_until_it_listens("mosquitto", port, process)
        yield process


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in a group of its own: Ctrl-C ends the benchmark, which ends its processes."""
    process = subprocess.Popen(  # noqa: S603
        command, stderr=subprocess.DEVNULL, process_group=0
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def run_load(command: list[str], limit: Limiter = no_limit) -> dict[str, Any]:
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, text=True, process_group=0
    ) as load:
        try:
            limit(load.pid, LOAD_CORES)
            output, _ = load.communicate(timeout=300)
        finally:
            load.kill()
    if load.returncode:
        raise subprocess.CalledProcessError(load.returncode, command)
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return figures


def stolen() -> float:
    """Return the processor seconds taken by other machines of the host (`steal` of proc(5))."""
    ticks = Path("/proc/stat").read_text().split(maxsplit=9)[8]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024)
    return float("nan")


if __name__ == "__main__":
    main()
