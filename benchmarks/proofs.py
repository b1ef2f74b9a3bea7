"""Measures all proofs of a thousand routes: seconds and peak memory, for every set of routes.

Run as `python -m benchmarks.proofs [routes [set ...]]`. The first line is the time to load the
ordinary set from a file.
"""

from __future__ import annotations

import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from pathlib import Path

from benchmarks.proof_sets import SETS, SYSTEMS, Routes, usual
from gateway.config.load import load
from gateway.proofs import prove

GOAL_SECONDS, GOAL_LOAD, GOAL_MIB = 5, 1, 500


def bench(name: str, routes: Routes) -> None:
    brokers = {name: name for name in SYSTEMS}  # one broker per endpoint
    start = time.process_time()
    found = prove(routes, brokers)
    spent = time.process_time() - start
    tracemalloc.start()
    prove(routes, brokers)
    memory = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    rules = Counter(finding.rule for finding in found)
    counts = ", ".join(f"{rule} {count:,}" for rule, count in sorted(rules.items()))
    over = "  OVER THE GOAL" if spent > GOAL_SECONDS else ""
    print(f"{name:<18}{spent:>8.2f} s {memory:>8.1f} MiB  {counts}{over}", flush=True)


def bench_load(routes: Routes) -> None:
    """Load the ordinary routes from a file, without proofs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gateway.yaml"
        file.write_text(as_yaml(routes))
        start = time.process_time()
        load(file)
        spent = time.process_time() - start
    print(f"{'loading':<18}{spent:>8.2f} s      (goal {GOAL_LOAD} s)", flush=True)


def as_yaml(routes: Routes) -> str:
    lines = ["endpoints:"]
    lines += [f"  {name}: {{kind: memory, dialect: {one}}}" for name, one in SYSTEMS.items()]
    lines.append("routes:")
    for route in routes:
        (target,) = route.targets
        template = f', template: "{target.template.text}"' if target.template else ""
        exclude = ", ".join(f'"{each.text}"' for each in route.excludes)
        source = f'pattern: "{route.source.text}", exclude: [{exclude}]'
        lines += [
            f"  {route.name}:",
            f"    from: {{endpoint: {route.endpoint}, {source}}}",
            f"    to: {{endpoint: {target.endpoint}{template}}}",
        ]
    return "\n".join(lines)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print(f"{count:,} routes; goal {GOAL_SECONDS} s and {GOAL_MIB} MiB")
    bench_load(usual(count))
    for name in sys.argv[2:] or SETS:
        bench(name, SETS[name](count))


if __name__ == "__main__":
    main()
