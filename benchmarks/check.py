"""`make bench-check`: have the ratios to the yardsticks become worse by more than a fifth?

Absolute rates depend on the machine. The ratio of the gateway to mosquitto's own bridge, to the
paho relay and to the bare ends of a path in the same run does much less. Each is measured several
times and the best is taken, for whatever else the machine does only ever makes it worse. All of it
takes about twenty minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import relay, through

RECORDED = Path(__file__).with_name("ratios.json")
TOLERATED = 0.8  # of a recorded ratio
SHAPES = [name for name in relay.SHAPES if name not in {"relaxed", "10 routes"}]
PATHS = [(system, way) for system in ("yami4", "jms", "solace") for way in ("to", "from")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="take what is measured as the norm")
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
    """The best of `times` ratios of the gateway to each yardstick; more is better in all."""
    best: dict[str, float] = {}
    for _ in range(times):
        for name, ratio in _once(messages):
            best[name] = max(best.get(name, 0.0), round(ratio, 2))
    return best


def _once(messages: int) -> Iterator[tuple[str, float]]:
    for name in SHAPES:
        shape = relay.SHAPES[name]
        ours = relay.measure("gateway", shape, messages)
        bridge = relay.measure("mosquitto", shape, messages)
        yield f"{name} x mosquitto", ours["messages_per_s"] / bridge["messages_per_s"]
        if name in relay.PLAINEST:
            paho = relay.measure("paho", shape, messages)
            yield f"{name} x paho", ours["messages_per_s"] / paho["messages_per_s"]
            yield f"{name} latency x mosquitto", bridge["p50_ms"] / ours["p50_ms"]
    for system, way in PATHS:
        found = through.measure(system, way, messages)
        yield f"mqtt {way} {system} x slower end", found["x slower end"]


def regressions(recorded: dict[str, float], found: dict[str, float]) -> list[str]:
    """What is worse than is tolerated, one line each."""
    return [
        f"{name}: {found.get(name, 0.0):.2f}, was {ratio:.2f}; less than {TOLERATED:.0%} of it"
        for name, ratio in recorded.items()
        if found.get(name, 0.0) < TOLERATED * ratio
    ]


if __name__ == "__main__":
    main()
