"""`make bench-check`: have the ratios to the yardsticks become worse by more than a fifth?

Absolute rates depend on the machine; the ratio of the gateway to mosquitto's own bridge and to the
paho relay in the same run does much less. Each is measured several times and the best is taken,
because whatever else the machine does only ever makes it worse.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.relay import Shape, measure

RECORDED = Path(__file__).with_name("ratios.json")
TOLERATED = 0.8  # of a recorded ratio
YARDSTICKS = ("mosquitto", "paho")


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
    """The best of `times` ratios of the gateway's rate to each yardstick's, by QoS."""
    best: dict[str, float] = {}
    for qos in (1, 0):
        for _ in range(times):
            ours = measure("gateway", Shape(qos), messages)["messages_per_s"]
            for other in YARDSTICKS:
                name = f"qos {qos} x {other}"
                ratio = ours / measure(other, Shape(qos), messages)["messages_per_s"]
                best[name] = max(best.get(name, 0.0), round(ratio, 2))
    return best


def regressions(recorded: dict[str, float], found: dict[str, float]) -> list[str]:
    """What is worse than is tolerated, one line each."""
    return [
        f"{name}: {found.get(name, 0.0):.2f}, was {ratio:.2f}; less than {TOLERATED:.0%} of it"
        for name, ratio in recorded.items()
        if found.get(name, 0.0) < TOLERATED * ratio
    ]


if __name__ == "__main__":
    main()
