"""Runs the nights of a world as `gateway reconcile` does, and compares each verdict with the truth.

A Spark session of the caller is used: a night takes seconds, where a verification takes
milliseconds.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, timedelta

from gateway.archive.layout import reconciled_folder
from gateway.night.reconcile.nights.run import run_night
from tests.nights.model_of_dates.judge import archive_of, job_of
from tests.nights.model_of_dates.machines import Fate, Fated, date_text
from tests.nights.model_of_dates.truth import Doubt, doubts, losses
from tests.nights.model_of_dates.worlds import World

_CLEAN, _NOT_CLEAN = 0, 1
_BREAKING = (Fate.MISSING, Fate.DOUBLED, Fate.ALTERED, Fate.UNSEEN)


@dataclass
class WholeNights:
    """The verdicts of a world so far, and what contradicts the truth."""

    contradictions: list[str] = field(default_factory=list)
    nights: int = 0
    dates: int = 0
    _verdicts: dict[str, int] = field(default_factory=dict)

    def night(self, world: World) -> None:
        """Run the night, and look at each date that it judged."""
        self.nights += 1
        run = run_night(archive_of(world), job_of(world), lambda *_: None)
        world.note_archived()
        judged = {
            each.date: each.status
            for each in run.link.dates
            if each.date < str(world.today) and self._verdicts.get(each.date) != each.status
        }
        lost = {each.date for each in losses(world)}
        known = list(doubts(world))
        for day, status in judged.items():
            self.dates += 1
            self._compare(world, day, status, lost, known)
            before = self._verdicts.get(day)
            if before == _CLEAN and status == _NOT_CLEAN and run.run.status == _CLEAN:
                self._contradict(world, f"{day} is not clean any more, and the run does not say so")
            self._verdicts[day] = status
        bad = any(status == _NOT_CLEAN for status in judged.values())
        if bad and run.run.status == _CLEAN:
            self._contradict(world, f"a date is not clean, and the run is: {run.run.headline}")

    def _compare(
        self, world: World, day: str, status: int, lost: set[str], known: list[Doubt]
    ) -> None:
        allowed = any(each.first <= day <= each.last for each in known)
        wrong = self._wrong(world, day)
        if status == _CLEAN and day in lost:
            self._contradict(world, f"{day} is clean, and rows of it are absent")
        if status == _CLEAN and wrong:
            self._contradict(world, f"{day} is clean, and has {wrong}")
        if status == _NOT_CLEAN and not wrong and not allowed:
            self._contradict(world, f"{day} is not clean without a cause: {_verdict(world, day)}")
        if status not in {_CLEAN, _NOT_CLEAN}:
            self._contradict(world, f"{day} has the status {status}: {_verdict(world, day)}")

    def _wrong(self, world: World, day: str) -> dict[str, int]:
        """The copies of the date, by the class that breaks its verdict."""
        found: dict[str, int] = defaultdict(int)
        for each in world.fates:
            if date_text(each.at) == day and each.journal.archived and _breaks(each, world):
                found[each.fate.value] += len(each.copies)
        return dict(found)

    def _contradict(self, world: World, text: str) -> None:
        self.contradictions.append(f"{world.today} {text}")


def _breaks(each: Fated, world: World) -> bool:
    if each.fate is Fate.SPOOLED:
        arrived = each.delivered is not None and each.delivered.archived
        age = world.today - timedelta(days=world.traits.spooled_days)
        return not arrived and date_text(each.at) < str(age)
    return each.fate in _BREAKING


def _verdict(world: World, day: str) -> str:
    path = world.bucket / reconciled_folder(world.bucket, date.fromisoformat(day))
    found = json.loads((path / "summary.json").read_bytes())
    return f"{found.get('headline')}; {[each['text'] for each in found.get('findings', ())][:2]}"
