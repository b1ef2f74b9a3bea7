"""Replays seeds of the simulation: `python -m tests.simulation SEED... [--trace] [--shrink]`.

`--to N` runs every seed from the first one to N, without it, in all processors.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields

from tests.simulation.books import short
from tests.simulation.campaign import run_in_processes
from tests.simulation.copy_plans import copy_plan
from tests.simulation.faults import make_plan
from tests.simulation.plan import Plan
from tests.simulation.shrink import shrink
from tests.simulation.simulate import Result, simulate
from tests.simulation.stream_plans import stream_plan
from tests.simulation.thin_plans import thin_plan


def main() -> int:
    """Run the seeds of the command line; return 1 if one has a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", metavar="SEED", type=int, nargs="+")
    parser.add_argument("--to", type=int, help="run all seeds up to this one")
    parser.add_argument(
        "--streams", dest="make", action="store_const", const=stream_plan, default=make_plan,
        help="worlds of NATS and RabbitMQ",
    )  # fmt: skip
    parser.add_argument(
        "--copies", dest="make", action="store_const", const=copy_plan, help="worlds of copies"
    )
    parser.add_argument(
        "--thin", dest="make", action="store_const", const=thin_plan, help="thinned targets"
    )
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--shrink", action="store_true", help="find a smaller plan first")
    options = parser.parse_args()
    if options.to is not None:
        campaign = run_in_processes(range(options.seeds[0], options.to), make=options.make)
        for seed, findings in sorted(campaign.findings.items()):
            _print(f"seed {seed}: {findings[0].splitlines()[0]}")
        _print(campaign.report())
        return int(bool(campaign.findings))
    failed = False
    for seed in options.seeds:
        result = simulate(options.make(seed))
        if result.findings and options.shrink:
            result = shrink(result)
        if options.trace:
            result = simulate(result.plan, trace=True)
        failed |= bool(result.findings)
        _print(*describe(result, trace=options.trace or bool(result.findings)))
    return int(failed)


def describe(result: Result, *, trace: bool) -> list[str]:
    """The plan, the findings and the events of a run, as lines."""
    lines = _plan_lines(result.plan)
    if trace:
        lines += result.log
    lines.append(f"seed {result.plan.seed}: {result.seconds:.1f} s, {result.steps} steps")
    lines += [f"finding: {each}" for each in result.findings] or ["no finding"]
    return lines


def _plan_lines(plan: Plan) -> list[str]:
    simple = [
        f"{each.name}={getattr(plan, each.name)}"
        for each in fields(plan)
        if each.name not in {"publications", "faults"}
    ]
    lines = [", ".join(simple)]
    lines += [
        f"  {each.at:8.4f} publish {short(each.payload)} as {each.key} at {each.broker}"
        for each in plan.publications
    ]
    lines += [
        f"  {each.at:8.4f} {each.kind} at {each.where} for {each.seconds:.2f} s,"
        f" {each.steps} steps later {short(each.payload)}"
        for each in plan.faults
    ]
    return lines


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
