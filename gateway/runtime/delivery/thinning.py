"""Thinning: which copies for one target are sent, held back or left out, by their name there.

A name has an *interval*, a *change*, or neither. It loses its change when a copy is sent that its
route does not compare: of an interval, of a route without a rule, or behind a held one. Begun and
kept: by each copy of a route that thins. After a crash: nothing is known of either.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from gateway.model.outcome import Settlement
from gateway.runtime.delivery.thinning_candidate import Candidate, Course
from gateway.runtime.delivery.thinning_changes import NameChanges
from gateway.runtime.delivery.thinning_intervals import HeldCopy, NameIntervals

Rules: TypeAlias = Collection[tuple[str, bool]]  # route, and whether by intervals


class Thinning:
    """The intervals and changes of the names of one target.

    Mutable: its owner calls one method at a time. Units: monotonic seconds.
    """

    def __init__(self, *, holds: bool) -> None:
        """`holds`: the target has a spool."""
        self.intervals = NameIntervals(holds=holds)
        self.changes = NameChanges()

    def course(self, copy: Candidate, now: float) -> Course | bytes:
        """Return the course of a copy, or the id of the copy that stands for it.

        Its caller hands copies over in the order of these calls; `hold` or `passed` of the
        intervals follows for each that is to be held, or to follow.
        """
        self.intervals.end_due(now)
        if copy.rule is None or copy.seconds or self.intervals.waits(copy.name):
            self.changes.forget(copy.name)
        found = self.intervals.course(copy, now)
        if found is not None:
            return found
        return Course.SEND if copy.rule is None else self.changes.course(copy)

    def answered(self, copy: Candidate, settlement: Settlement, at: tuple[int, int]) -> None:
        """Take the final settlement of a copy that was sent, from the place `at` in its lane."""
        if copy.seconds:
            self.intervals.answered(copy, settlement)
        else:
            self.changes.answered(copy, settlement, at)

    def take_ready(
        self, most: int, size: int, now: float, *, both: bool = False
    ) -> list[tuple[str, HeldCopy]]:
        """Take held copies as `NameIntervals.take_ready` does; the target gets another value."""
        taken = self.intervals.take_ready(most, size, now, both=both)
        for name, _ in taken:
            self.changes.forget(name)
        return taken

    def keep(self, rules: Rules, now: float) -> None:
        """End what is of no rule any more."""
        self.intervals.keep({route for route, by_intervals in rules if by_intervals}, now)
        self.changes.keep({route for route, by_intervals in rules if not by_intervals})
