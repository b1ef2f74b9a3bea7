"""The goals where no process takes time from another: each has a core, or an equal part of one.

On a machine of two cores the brokers, the load and the gateway share them, and what the gateway
takes the brokers lack. Hosts of their own, as users have, are made here of parts of cores (see
`benchmarks.processor`; that takes root and cgroups). A relay and its yardstick take turns; `x` is
the ratio of each pair, in order.
"""

from __future__ import annotations

import argparse
import json
import os
from statistics import median

from benchmarks import relay, through
from benchmarks.check import PATHS
from benchmarks.columns import table
from benchmarks.processor import Place, apart

SLOW = 5  # times fewer messages for the vendor's library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument(
        "--shapes", nargs="*", default=list(relay.SHAPES), choices=list(relay.SHAPES)
    )
    parser.add_argument("--systems", nargs="*", default=["yami4", "jms", "solace"])
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    with apart() as place:
        for name in args.shapes:
            rows.append(relayed(name, args.messages, args.times, place))
            print(json.dumps(rows[-1]), flush=True)
        place(os.getpid())  # the load of the other paths, a process as the gateway is
        for system, way in PATHS:
            if system in args.systems:
                rows.append(bridged(system, way, args.messages, args.times, place))
                print(json.dumps(rows[-1]), flush=True)
    print(table(rows))


def relayed(name: str, messages: int, times: int, place: Place) -> dict[str, object]:
    """The gateway beside mosquitto's own bridge."""
    shape = relay.SHAPES[name]
    pairs = [
        [relay.measure(which, shape, messages, place) for which in ("mosquitto", "gateway")]
        for _ in range(times)
    ]
    return {
        "path": name,
        "yardstick/s": median(bridge["messages_per_s"] for bridge, _ in pairs),
        "gateway/s": median(ours["messages_per_s"] for _, ours in pairs),
        "x": [
            round(ours["messages_per_s"] / bridge["messages_per_s"], 2) for bridge, ours in pairs
        ],
        "us": pairs[-1][1]["us"],
        "faults": sum(
            each[fault]
            for pair in pairs
            for each in pair
            for fault in ("lost", "duplicates", "reordered")
        ),
    }


def bridged(system: str, way: str, messages: int, times: int, place: Place) -> dict[str, object]:
    """The gateway beside the slower of the two ends that it bridges."""
    number = messages // SLOW if system == "solace" else messages
    found = [through.measure(system, way, number, place) for _ in range(times)]
    return {
        "path": f"mqtt {way} {system}",
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
