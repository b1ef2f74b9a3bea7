"""`make bench`: every benchmark, one after the other, each printing its own figures."""

from __future__ import annotations

import runpy
import sys

PROGRAMS = ("names", "table", "archive", "proofs", "relay", "through", "yami4", "jms", "smf")


def main() -> None:
    for name in sys.argv[1:] or PROGRAMS:
        print(f"== {name}", flush=True)
        sys.argv[1:] = []
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
