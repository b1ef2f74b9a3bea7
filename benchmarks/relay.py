"""mosquitto -> relay -> mosquitto for every relay in one run: rate, latency, memory, correctness.

    python -m benchmarks.relay [--shapes NAME ...] [--relays NAME ...] [--messages N]

The relays: mosquitto's own bridge (C), Node-RED where it is installed, ten lines of paho-mqtt, and
the gateway with translation and archive on. Only the ratios of one run count: machines are noisy.
`stolen_cores` is what other machines of the same host took meanwhile, in cores: where it is more
than a few hundredths the latencies are theirs.
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
from benchmarks.columns import table
from benchmarks.processor import LOAD, Place, each_message, seconds, together
from gateway.demo.broker import free_port, wait_until_it_listens

HERE = Path(__file__).parent
PLAIN = """\
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
  to: {{kind: mqtt, host: 127.0.0.1, port: {target}, version: "{version}", qos: {qos}}}
archive: {{path: {archive}, sync: {sync}}}
routes:
"""
ONE = """\
  relay:
    from: {endpoint: from, pattern: "src/{rest...}"}
    to: {endpoint: to, template: "dst/{rest...}"}
"""
EACH = """\
  r{n}: {{from: {{endpoint: from, pattern: src/{n}}}, to: {{endpoint: to, template: dst/{n}}}}}
"""
IDLE = """\
  i{n}:
    from: {{endpoint: from, pattern: other/{n}/+}}
    to: {{endpoint: to, template: "idle/{n}/{{1}}"}}
"""
WINDOW = 4_000  # messages outstanding
WARMUP = 500  # messages before those that count
OUTSTANDING = 64 << 20  # bytes outstanding
VOLUME = 1 << 30  # bytes of one measurement at most


@dataclass(frozen=True, slots=True)
class Shape:
    """What is relayed: payload bytes, and how the gateway is set up for it."""

    qos: int = 1
    size: int = 100
    routes: int = 1  # more than one: a route and a subscription for each topic
    topics: int = 1_000
    subscriptions: int = 1  # of all routes; more than there are routes: some get no message
    sync: str = "batch"  # of the archive
    version: str = "3.1.1"  # of MQTT
    inflight: int = 0  # messages that the brokers let wait for their acknowledgement; 0: any number

    def messages(self, wanted: int) -> int:
        return min(wanted, VOLUME // self.size)

    @property
    def load(self) -> list[str]:
        """Arguments of the load."""
        window = max(16, min(WINDOW, OUTSTANDING // self.size))
        given = {"qos": self.qos, "size": self.size, "topics": self.topics, "window": window}
        given["start-timeout"] = 90
        return [part for name, value in given.items() for part in (f"--{name}", str(value))]


SHAPES = {
    "qos 1": Shape(1),
    "qos 0": Shape(0),
    "relaxed": Shape(1, sync="interval"),
    "MQTT 5, 20 in flight": Shape(1, version="5", inflight=20),  # what mosquitto is installed with
    "1 KB": Shape(size=1 << 10),
    "64 KB": Shape(size=1 << 16),
    "1 MB": Shape(size=1 << 20),
    "1,000 routes": Shape(routes=1_000),
    "10 routes": Shape(routes=10, topics=10),
    "10,000 subscriptions": Shape(routes=10, topics=10, subscriptions=10_000),
}
PLAINEST = ("qos 1", "qos 0")  # what the slow relays are measured with, too


def main() -> None:
    slow = ["paho", *(["node-red"] if node_red.program() else [])]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--relays", nargs="*", default=["mosquitto", *slow, "gateway"])
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name in args.shapes:
        yardstick: dict[str, float] = {}
        for relay in args.relays:
            if relay in slow and name not in PLAINEST:
                continue
            figures = measure(relay, SHAPES[name], args.messages)
            yardstick[relay] = figures["messages_per_s"] or 0
            against = {
                f"x {other}": round(yardstick[relay] / rate, 2)
                for other, rate in yardstick.items()
                if other != relay and rate
            }
            rows.append({"shape": name, "relay": relay, **figures, **against})
            print(json.dumps(rows[-1]), flush=True)
    print(table(rows))


def measure(relay: str, shape: Shape, messages: int, place: Place = together) -> dict[str, Any]:
    """Throughput, then latency at 1,000 messages/s, then the relay's resident memory.

    `us` is processor time a message of that throughput: both brokers, the relay, the load.
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
        every = dict.fromkeys((start.pid, to.pid, process.pid))  # a bridge is its broker
        for pid in every:
            place(pid)
        load = [sys.executable, str(HERE / "relay_load.py"), "--from-port", str(source)]
        load += ["--to-port", str(target), *shape.load, "--warmup", str(WARMUP)]
        run_load([*load, "--messages", "1000"], place)  # until all are up
        before, since = stolen(), time.monotonic()
        number = shape.messages(messages)
        spent = _spent(every)
        rate = run_load([*load, "--messages", str(number)], place)
        used = each_message(spent, _spent(every), number + WARMUP)
        memory = resident(process.pid)
        rhythm = ["--rate", str(min(1_000, OUTSTANDING // shape.size))]
        paced = run_load([*load, *rhythm, "--messages", str(shape.messages(5_000))], place)
        taken = (stolen() - before) / (time.monotonic() - since)
    return {
        "messages_per_s": rate["messages_per_s"],
        "lost": rate["lost"] + paced["lost"],
        "duplicates": rate["duplicates"] + paced["duplicates"],
        "reordered": rate["reordered"] + paced["reordered"],
        "p50_ms": paced["latency_ms"]["p50"],
        "p99_ms": paced["latency_ms"]["p99"],
        "rss_mb": memory,
        "us": used,
        "stolen_cores": round(taken, 2),
    }


def _spent(pids: Iterable[int]) -> list[float]:
    """Processor seconds so far of each process, and of all loads that have ended."""
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
    """The gateway's YAML, to which more sections may be added."""
    head = CONFIG.format(
        source=source,
        target=target,
        version=shape.version,
        qos=shape.qos,
        archive=archive,
        sync=shape.sync,
    )
    routes = [ONE] if shape.routes == 1 else [EACH.format(n=n) for n in range(shape.routes)]
    idle = [IDLE.format(n=n) for n in range(shape.subscriptions - shape.routes)]
    return head + "".join([*routes, *idle])


@contextmanager
def broker(
    folder: Path, port: int, extra: str = "", inflight: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    config = folder / f"{port}.conf"
    config.write_text(PLAIN.format(port=port, inflight=inflight) + extra)
    with running(["/usr/sbin/mosquitto", "-c", str(config)]) as process:
        wait_until_it_listens("mosquitto", port, process)
        yield process


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603  # our own
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def run_load(command: list[str], place: Place = together) -> dict[str, Any]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:  # noqa: S603
        try:
            place(load.pid, LOAD)
            said, _ = load.communicate(timeout=300)
        finally:
            load.kill()
    if load.returncode:
        raise subprocess.CalledProcessError(load.returncode, command)
    figures: dict[str, Any] = json.loads(said.splitlines()[-1])
    return figures


def stolen() -> float:
    """Seconds of processor time that other machines of the same host have taken from this one.

    Linux counts them (`steal` in proc(5)); where nothing is shared there are none.
    """
    ticks = Path("/proc/stat").read_text().split(maxsplit=9)[8]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024)
    return float("nan")


if __name__ == "__main__":
    main()
