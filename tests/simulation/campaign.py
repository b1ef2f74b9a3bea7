"""Many seeds in a pool of processes, with the coverage of all events."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context

from tests.simulation.faults import make_plan
from tests.simulation.plan import Plan
from tests.simulation.simulate import simulate


@dataclass(slots=True)
class Campaign:
    """The findings by seed, and how often each kind of event occurred in all runs."""

    findings: dict[int, list[str]] = field(default_factory=dict)
    coverage: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0  # simulated
    steps: int = 0

    def add(self, other: Campaign) -> None:
        self.findings |= other.findings
        self.coverage.update(other.coverage)
        self.seconds += other.seconds
        self.steps += other.steps

    def report(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.coverage.items()))
        return f"{self.seconds:.0f} simulated seconds, {self.steps} steps: {counts}"


def run_seeds(seeds: Iterable[int], make: Callable[[int], Plan] = make_plan) -> Campaign:
    """Run the plan of each seed in this process."""
    found = Campaign()
    for seed in seeds:
        result = simulate(make(seed))
        if result.findings:
            found.findings[seed] = [str(each) for each in result.findings]
        found.coverage.update(result.coverage)
        found.seconds += result.seconds
        found.steps += result.steps
    return found


def run_in_processes(
    seeds: range,
    share: int = 200,
    processes: int | None = None,
    make: Callable[[int], Plan] = make_plan,
) -> Campaign:
    """Run the seeds in new processes, as many as there are processors by default."""
    shares = [seeds[at : at + share] for at in range(0, len(seeds), share)]
    total = Campaign()
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for each in pool.map(partial(run_seeds, make=make), shares):
            total.add(each)
    return total
