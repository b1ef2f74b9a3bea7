"""Runs for an hour at a share of the highest rate: shows whether memory and latency stay constant.

    python -m benchmarks.hour [--minutes 60] [--share 0.6 | --rate N] [--qos 1]

The gateway carries MQTT between two mosquitto brokers, with its archive. The benchmark measures the
highest rate, then prints a line with percentiles per minute, and at the end compares the last
quarter with the first. Both exclude the first minutes, in which the caches of recent messages fill.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.memory import memory
from benchmarks.relay import HERE, Shape, broker, relay_command, run_load, running
from gateway.trial.brokers.listening import free_port

MINUTE = 60  # seconds
WARMUP_MINUTES = 5
SAMPLE = 100_000  # messages to measure the highest rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--rate", type=int, help="messages per second, instead of a share")
    parser.add_argument("--share", type=float, default=0.6, help="share of the highest rate")
    parser.add_argument("--qos", type=int, default=1, choices=(0, 1))
    args = parser.parse_args()
    shape = Shape(args.qos)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, target = free_port(), free_port()
        stack.enter_context(broker(folder, source))
        stack.enter_context(broker(folder, target))
        command = relay_command("gateway", folder, source, target, shape)
        gateway = stack.enter_context(running(command))
        load = [sys.executable, str(HERE / "relay_load.py"), "--from-port", str(source)]
        load += ["--to-port", str(target), *shape.load]
        top = run_load([*load, "--messages", str(SAMPLE)])["messages_per_s"]
        rate = args.rate or round(top * args.share)
        print(json.dumps({"top": top, "rate": rate}), flush=True)
        load += ["--rate", str(rate), "--messages", str(rate * MINUTE), "--warmup", "500"]
        minutes: list[dict[str, float]] = []
        for minute in range(args.minutes):
            got = run_load(load)
            faults = {name: got[name] for name in ("lost", "duplicates", "reordered")}
            now = {
                "minute": minute,
                "messages_per_s": got["messages_per_s"],
                "p50_ms": got["latency_ms"]["p50"],
                "p99_ms": got["latency_ms"]["p99"],
                "rss_mb": round(memory(gateway.pid)["VmRSS"], 1),
                "files": len(list(Path(f"/proc/{gateway.pid}/fd").iterdir())),
                **faults,
            }
            minutes.append(now)
            print(json.dumps(now), flush=True)
    print(json.dumps(compared(minutes)), flush=True)


def compared(minutes: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the medians of the first and the last quarter, and the sums of all faults."""
    steady = minutes[WARMUP_MINUTES:] or minutes
    quarter = max(1, len(steady) // 4)
    summary = {name: sum(each[name] for each in minutes) for name in ("lost", "duplicates")}
    for name in ("p50_ms", "p99_ms", "rss_mb", "files"):
        summary[f"{name} first"] = median(each[name] for each in steady[:quarter])
        summary[f"{name} last"] = median(each[name] for each in steady[-quarter:])
    return summary


if __name__ == "__main__":
    main()
