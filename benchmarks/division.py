"""Measures how several gateways divide the traffic between two brokers: rate and order.

    python -m benchmarks.division [--messages N] [--rounds N] [--separate]

Ten subtrees pass one gateway, two gateways with five subtrees each, or two members of a shared
subscription. `reordered` counts messages that arrive after a later one of the same name,
`overtaken` those that arrive after a later one of any name. The ways alternate. With `--separate`
each process has a share of a core of its own, as between hosts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any, Final

from benchmarks.columns import table
from benchmarks.processor import Limiter, no_limit, separate_cores
from benchmarks.relay import CONFIG, HERE, broker, run_load
from gateway.trial.brokers.listening import free_port
from tests.brokers.running import Process

SUBTREES: Final = 10
LOAD: Final = ["--qos", "1", "--topics", str(SUBTREES), "--send", "src/%d/state"]
ROUTE: Final = """\
  r{n}:
    from: {{endpoint: from, pattern: "{share}src/{n}/{{rest...}}"}}
    to: {{endpoint: to, template: "dst/{n}/{{rest...}}"}}
"""
WAYS: Final[dict[str, list[tuple[str, range]]]] = {  # the share and the subtrees of each gateway
    "one gateway": [("", range(SUBTREES))],
    "two, by subtree": [("", range(5)), ("", range(5, SUBTREES))],
    "two, by `$share`": [("$share/bench/", range(SUBTREES))] * 2,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--separate", action="store_true")
    args = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way, figures in found.items():
            with separate_cores(machine=1) if args.separate else nullcontext(no_limit) as limit:
                figures.append(measure(way, args.messages, limit))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    print(table([{"way": way, **_summary(figures)} for way, figures in found.items()]))


def measure(way: str, messages: int, limit: Limiter) -> dict[str, Any]:
    """Return the figures of `relay_load.py`."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = [free_port(), free_port()]
        for port in ports:
            limit(stack.enter_context(broker(folder, port)).pid)
        for number, (share, subtrees) in enumerate(WAYS[way]):
            config = folder / f"{number}.yaml"
            head = CONFIG.replace("name: bench", f"name: bench-{number}").format(
                source=ports[0], target=ports[1], version="5", qos=1,
                archive=folder / f"archive-{number}", sync="batch", allow="",
            )  # fmt: skip
            routes = [ROUTE.format(n=n, share=share) for n in subtrees]
            config.write_text(head + "".join(routes))
            process = Process(config)
            stack.callback(process.end)
            for side, endpoint in (("source", "from"), ("sink", "to")):
                process.wait_for("connected", endpoint=endpoint, side=side)
            limit(process.process.pid)
        source, target = map(str, ports)
        load = [sys.executable, str(HERE / "relay_load.py"), "--version", "5", *LOAD]
        load += ["--from-port", source, "--to-port", target, "--start-timeout", "90"]
        return run_load([*load, "--messages", str(messages)], limit)


def _summary(figures: list[dict[str, Any]]) -> dict[str, object]:
    rates = [each["messages_per_s"] for each in figures]
    counts = ("lost", "duplicates", "reordered", "overtaken")
    return {
        "messages_per_s": statistics.median(rates),
        "lowest": min(rates),
        "highest": max(rates),
        **{name: sum(each[name] for each in figures) for name in counts},
    }


if __name__ == "__main__":
    main()
