"""The log of a run: its lines, and how often each kind of event occurred."""

from __future__ import annotations

from collections import Counter

from tests.simulation.scheduler import Scheduler


class RunLog:
    """Mutable: grows during the run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.lines: list[str] = []
        self.coverage: Counter[str] = Counter()

    def __call__(self, kind: str, text: str) -> None:
        """Add a line, and count its kind."""
        self.coverage[kind] += 1
        self.lines.append(f"{self._scheduler.now:9.4f} {kind:10} {text}")
