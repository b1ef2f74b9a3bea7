"""Measures each path with a core, or an equal share of one, for each process.

On two shared cores, the gateway takes processor time from the brokers. In production they run on
separate hosts. Shares of cores simulate such hosts (see `benchmarks.processor`; this needs root and
cgroups). A relay and its yardstick alternate; `x` lists the ratio of each pair.
"""

from __future__ import annotations

import argparse
import os
from statistics import median

from benchmarks import relay, through
from benchmarks.check import PATHS
from benchmarks.columns import printed_rows
from benchmarks.processor import Limiter, separate_cores

SOLACE_DIVISOR = 5  # fewer messages for the vendor's slower library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument(
        "--shapes", nargs="*", default=list(relay.SHAPES), choices=list(relay.SHAPES)
    )
    parser.add_argument("--systems", nargs="*", default=["yami4", "jms", "solace"])
    args = parser.parse_args()
    with printed_rows() as add, separate_cores() as limit:
        for name in args.shapes:
            add(relayed(name, args.messages, args.times, limit))
        limit(os.getpid())  # this process is the load of the other paths
        for system, direction in PATHS:
            if system in args.systems:
                add(bridged(system, direction, args.messages, args.times, limit))


def relayed(name: str, messages: int, times: int, limit: Limiter) -> dict[str, object]:
    """Compare the gateway with mosquitto's bridge."""
    shape = relay.SHAPES[name]
    pairs = [
        [relay.measure(which, shape, messages, limit) for which in ("mosquitto", "gateway")]
        for _ in range(times)
    ]
    return {
        "path": name,
        "yardstick/s": median(bridge["messages_per_s"] for bridge, _ in pairs),
        "gateway/s": median(gateway["messages_per_s"] for _, gateway in pairs),
        "x": [
            round(gateway["messages_per_s"] / bridge["messages_per_s"], 2)
            for bridge, gateway in pairs
        ],
        "us": pairs[-1][1]["us"],
        "faults": sum(
            each[fault]
            for pair in pairs
            for each in pair
            for fault in ("lost", "duplicates", "reordered")
        ),
    }


def bridged(
    system: str, direction: str, messages: int, times: int, limit: Limiter
) -> dict[str, object]:
    """Compare the gateway with the slower of the two bare sides."""
    number = messages // SOLACE_DIVISOR if system == "solace" else messages
    found = [through.measure(system, direction, number, limit) for _ in range(times)]
    return {
        "path": f"mqtt {direction} {system}",
        "yardstick/s": median(
            min(each["bare_mqtt_per_s"], each["bare_other_per_s"]) for each in found
        ),
        "gateway/s": median(each["messages_per_s"] for each in found),
        "x": [each["x slower end"] for each in found],
        "us": found[-1]["us"],
        "faults": sum(each["lost"] for each in found),
    }


if __name__ == "__main__":
    main()
