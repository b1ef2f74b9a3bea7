"""`make bench-check`: fails when a figure of the gateway is more than a fifth worse than recorded.

`ratios.json` has two tables. `rates` are ratios to mosquitto's bridge, to the paho relay and to the
bare sides of a path in the same run: higher is better. `cpu` is the gateway's processor time for a
message, divided by the mean of both brokers' in the same run: lower is better. Absolute rates
depend on the machine. The ratios of rates depend on it much less, and `cpu` least. Each figure is
measured several times and the best one counts, because other load only makes it worse. The check
takes about twenty minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import TypeAlias

from benchmarks import relay, through
from benchmarks.columns import printed_rows

RECORDED = Path(__file__).with_name("ratios.json")
MIN_SHARE = 0.8  # of a recorded ratio
SHAPES = [name for name in relay.SHAPES if name not in {"relaxed", "10 routes"}]
PATHS = [
    (system, direction) for system in ("yami4", "jms", "solace") for direction in ("to", "from")
]

Tables: TypeAlias = dict[str, dict[str, float]]  # `rates` and `cpu`


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="record the measured figures")
    args = parser.parse_args()
    with printed_rows() as add:
        found = measured(args.messages, args.times, add)
    print(json.dumps(found, indent=2))
    if args.record:
        RECORDED.write_text(json.dumps(found, indent=2) + "\n")
        return
    worse = regressions(json.loads(RECORDED.read_text()), found)
    for line in worse:
        print(line, file=sys.stderr)
    sys.exit(1 if worse else 0)


def measured(messages: int, times: int, add: Callable[[Mapping[str, object]], None]) -> Tables:
    """Return the best of `times` values of each figure; `add` gets each value as a row."""
    best: Tables = {"rates": {}, "cpu": {}}
    for _ in range(times):
        for table, name, value in _once(messages):
            add({"table": table, "figure": name, "value": round(value, 2)})
            chosen = best[table].get(name, value)
            best[table][name] = round((max if table == "rates" else min)(chosen, value), 2)
    return best


def _once(messages: int) -> Iterator[tuple[str, str, float]]:
    """Yield table, name and value of each figure."""
    for name in SHAPES:
        shape = relay.SHAPES[name]
        gateway = relay.measure("gateway", shape, messages)
        bridge = relay.measure("mosquitto", shape, messages)
        yield "cpu", name, gateway["cpu"]
        yield "rates", f"{name} x mosquitto", gateway["messages_per_s"] / bridge["messages_per_s"]
        if name in relay.BASIC_SHAPES:
            paho = relay.measure("paho", shape, messages)
            yield "rates", f"{name} x paho", gateway["messages_per_s"] / paho["messages_per_s"]
            yield "rates", f"{name} latency x mosquitto", bridge["p50_ms"] / gateway["p50_ms"]
    for system, direction in PATHS:
        found = through.measure(system, direction, messages)
        path = found["path"]
        yield "cpu", path, found["cpu"]
        yield "rates", f"{path} x slower end", found["x slower end"]


def regressions(recorded: Tables, found: Tables) -> list[str]:
    """Return a line for each figure that is a fifth worse than the recorded one, or missing."""
    lines = [
        f"{name}: {found['rates'].get(name, 0.0):.2f}, was {ratio:.2f}; less than {MIN_SHARE:.0%}"
        for name, ratio in recorded["rates"].items()
        if found["rates"].get(name, 0.0) < MIN_SHARE * ratio
    ]
    return lines + [
        f"{name}: processor time {found['cpu'].get(name, inf):.2f}, was {share:.2f}; more than"
        f" {1 / MIN_SHARE:.0%}"
        for name, share in recorded["cpu"].items()
        if MIN_SHARE * found["cpu"].get(name, inf) > share
    ]


if __name__ == "__main__":
    main()
