"""`make bench-check`: fails when a ratio to a yardstick is more than a fifth worse than recorded.

Absolute rates depend on the machine. The ratios of the gateway to mosquitto's bridge, to the paho
relay and to the bare sides of a path in the same run depend on it much less. Each ratio is measured
several times and the best one counts, because other load only makes it worse. The check takes about
twenty minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import relay, through

RECORDED = Path(__file__).with_name("ratios.json")
MIN_SHARE = 0.8  # of a recorded ratio
SHAPES = [name for name in relay.SHAPES if name not in {"relaxed", "10 routes"}]
PATHS = [
    (system, direction) for system in ("yami4", "jms", "solace") for direction in ("to", "from")
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="record the measured ratios")
    args = parser.parse_args()
    found = ratios(args.messages, args.times)
    print(json.dumps(found, indent=2))
    if args.record:
        RECORDED.write_text(json.dumps(found, indent=2) + "\n")
        return
    worse = regressions(json.loads(RECORDED.read_text()), found)
    for line in worse:
        print(line, file=sys.stderr)
    sys.exit(1 if worse else 0)


def ratios(messages: int, times: int) -> dict[str, float]:
    """Return the best of `times` ratios of the gateway to each yardstick; higher is better."""
    best: dict[str, float] = {}
    for _ in range(times):
        for name, ratio in _once(messages):
            best[name] = max(best.get(name, 0.0), round(ratio, 2))
    return best


def _once(messages: int) -> Iterator[tuple[str, float]]:
    for name in SHAPES:
        shape = relay.SHAPES[name]
        gateway = relay.measure("gateway", shape, messages)
        bridge = relay.measure("mosquitto", shape, messages)
        yield f"{name} x mosquitto", gateway["messages_per_s"] / bridge["messages_per_s"]
        if name in relay.BASIC_SHAPES:
            paho = relay.measure("paho", shape, messages)
            yield f"{name} x paho", gateway["messages_per_s"] / paho["messages_per_s"]
            yield f"{name} latency x mosquitto", bridge["p50_ms"] / gateway["p50_ms"]
    for system, direction in PATHS:
        found = through.measure(system, direction, messages)
        yield f"mqtt {direction} {system} x slower end", found["x slower end"]


def regressions(recorded: dict[str, float], found: dict[str, float]) -> list[str]:
    """Return a line for each ratio below MIN_SHARE of the recorded one."""
    return [
        f"{name}: {found.get(name, 0.0):.2f}, was {ratio:.2f}; less than {MIN_SHARE:.0%} of it"
        for name, ratio in recorded.items()
        if found.get(name, 0.0) < MIN_SHARE * ratio
    ]


if __name__ == "__main__":
    main()
