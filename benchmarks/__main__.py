"""`make bench`: runs every benchmark in sequence; each prints its own figures."""

from __future__ import annotations

import sys
from importlib import import_module

PROGRAMS = (
    "names", "table", "archive", "proofs", "relay", "memory", "through", "delivery", "yami4",
    "jms", "jms_relay", "smf", "streams", "reconcile", "hour", "core_each", "division",
)  # fmt: skip


def main() -> None:
    for name in sys.argv[1:] or PROGRAMS:
        print(f"== {name}", flush=True)
        sys.argv[1:] = []
        import_module(
            f"benchmarks.{name}"
        ).main()  # by its name, which `smf` needs to start processes


if __name__ == "__main__":
    main()
