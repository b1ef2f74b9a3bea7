"""Judges the archive of a world as its people do, and compares the verdicts with the truth."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from gateway.archive.findings import Finding, Weight
from gateway.archive.layout import SEALS, parse_journal_name
from gateway.archive.location import ArchiveLocation
from gateway.night.archive.acknowledged import with_acknowledged
from gateway.night.archive.night_record import Night
from gateway.night.archive.seals.store import StoredSeal, read_seal
from gateway.night.archive.segments.convert import convert_abandoned
from gateway.night.archive.verification.verify import Verified, verify_day
from gateway.night.reconcile.job import Job
from gateway.night.reconcile.nights.chain import read_chain, write_night
from gateway.night.reconcile.nights.plan import plan_night, with_verdict
from gateway.night.reconcile.nights.witness import newest_stated, state_night
from gateway.night.reconcile.nights.world import world_of
from tests.nights.model_of_dates.tampering import NIGHTS_REMOVED
from tests.nights.model_of_dates.truth import Doubt, Loss, doubts, losses
from tests.nights.model_of_dates.worlds import FIRST, World

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class ArchiveJob(Job):
    """A job whose archive is a folder that is reached as a bucket is, by its URL."""

    url: str = ""

    @property
    def location(self) -> ArchiveLocation:
        return ArchiveLocation(Path(self.archive), self.url)


def archive_job(world: World) -> Job:
    """The job of a night of the world, whose journals are out of reach in a bucket."""
    yesterday = world.today - ONE_DAY
    if not world.url:
        return Job(world.bucket, yesterday, now=world.clock.now, key=world.key)
    away = world.folder / "no-machine"
    return ArchiveJob(away, yesterday, now=world.clock.now, key=world.key, url=world.url)


@dataclass
class Judge:
    """The verdicts of a world so far, and what contradicts the truth."""

    contradictions: list[str] = field(default_factory=list)
    verified: int = 0
    nights: int = 0
    judged: dict[str, int] = field(default_factory=dict)  # the last verdict of each date
    alarms: list[Finding] = field(default_factory=list)  # of the last night
    _doubted: list[Doubt] = field(default_factory=list)
    _seals: dict[tuple[object, ...], StoredSeal] = field(default_factory=dict)
    _rng: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311

    def night(self, world: World, *, whole: bool = False) -> None:
        """Do what `gateway reconcile` does without comparing rows, then check the verdicts."""
        self.nights += 1
        if not world.url:
            convert_abandoned(ArchiveLocation(world.bucket), world.storage, world.key)
            world.note_archived()
        found = self.verify(world, whole=whole)
        night = self._link(world, found)
        self._compare(world, found, night)
        self._taken_back(world, found, night)

    def verify(self, world: World, *, whole: bool = False) -> dict[str, Verified]:
        """Verify the dates that may have changed, and one other; all of them when `whole`."""
        folder = None if world.url else world.bucket
        closed = [FIRST + number * ONE_DAY for number in range((world.today - FIRST).days)]
        known = [*doubts(world), *self._doubted]
        self._doubted = list(doubts(world))
        wanted = {
            day for day in closed if whole or day in closed[-2:] or _allowed(known, day.isoformat())
        }
        wanted.add(self._rng.choice(closed))
        self.verified += len(wanted)
        read = partial(self._read, world)
        return {
            day.isoformat(): verify_day(
                world.storage, day, world.key, journals=folder, today=world.today, read=read
            )
            for day in sorted(wanted)
        }

    def _verify_one(self, world: World, day: str) -> dict[str, Verified]:
        folder = None if world.url else world.bucket
        one = date.fromisoformat(day)
        found = verify_day(world.storage, one, world.key, journals=folder, today=world.today)
        return {day: found}

    def _read(self, world: World, path: Path) -> StoredSeal:
        """Read a seal, unless its file is the one that was read before."""
        with suppress(FileNotFoundError):
            facts = (world.bucket / path).stat()
            key = (path, facts.st_mtime_ns, facts.st_size, facts.st_ino)
            if key not in self._seals:
                self._seals[key] = read_seal(world.storage, path)
            return self._seals[key]
        return read_seal(world.storage, path)

    def _link(self, world: World, found: dict[str, Verified]) -> Night:
        job = archive_job(world)
        stated = newest_stated(world.storage, world.key)
        chain = read_chain(world.storage, world.key, stated=stated)
        read = partial(self._read, world)
        seen = world_of(job, chain.newest, world.clock.now, frozenset(), read)
        night = plan_night(chain.newest, seen, at=world.clock.now, spooled_days=7)
        findings = (*chain.findings, *night.findings)
        night = replace(night, n=chain.last + 1, previous=chain.newest.mac, findings=findings)
        shown = with_acknowledged(world.storage, findings, world.key)
        self._acknowledged(world, findings, shown)
        self.alarms = [each for each in shown if each.weight is Weight.ERROR]
        todo = [
            each.date for each in night.dates if each.date < str(world.today) and not each.settled
        ]
        for day in todo:
            if day not in found:
                found |= self._verify_one(world, day)
            status = int(bool(errors(found[day])))
            night = with_verdict(night, day, status, 0)
        written = write_night(world.storage, night, world.key)
        for day in todo:
            state_night(world.storage, date.fromisoformat(day), written, world.key)
            self.judged[day] = int(bool(errors(found[day])))
        return written

    def _acknowledged(
        self, world: World, findings: Sequence[Finding], shown: Sequence[Finding]
    ) -> None:
        """All findings are shown, and exactly those that somebody acknowledged are no errors."""
        for finding, each in zip(findings, shown, strict=True):
            known = finding in world.acknowledged
            if known and (each.weight is Weight.ERROR or "(acknowledged: known)" not in each.text):
                self._contradict(world, f"somebody acknowledged, and the night shows: {each}")
            if not known and each != finding:
                self._contradict(world, f"nobody acknowledged {finding}, and the night does")

    def _compare(self, world: World, found: dict[str, Verified], night: Night) -> None:
        lost: dict[str, list[Loss]] = defaultdict(list)
        for each in losses(world):
            lost[each.date].append(each)
        known = list(doubts(world))
        # Nothing tells a first date that is wholly lost from one that was removed: `chain-begins`.
        first = min(_dates(world), default="")
        for day, verified in found.items():
            bad = errors(verified)
            if lost[day] and not bad and day >= first:
                self._contradict(world, f"{day} is clean, and {lost[day][0].why}")
            if bad and not _allowed(known, day):
                self._contradict(world, f"{day} is not clean without a cause: {bad[0]}")
        # The night after records came back sees that the newest one does not follow them.
        again = any(each.kind == NIGHTS_REMOVED for each in world.tampered)
        alarms = [each for each in self.alarms if not (again and each.rule == "forged-night")]
        if alarms and not known:
            self._contradict(world, f"the night has an error without a cause: {alarms[0]}")
        if world.nights_are_missing and not any(e.rule == "missing-night" for e in night.findings):
            self._contradict(world, "the records of nights are removed, and no night says so")
        removed = {each.stem for each in world.tampered if each.stem and not each.undone}
        for name in filter(None, map(parse_journal_name, sorted(removed))):
            silent = name.writer in {each.name for each in world.writers if each.retired}
            if night.has_judged(name) and not night.findings and not silent:
                self._contradict(world, f"the seal of {name} is another one, and no night says so")

    def _taken_back(self, world: World, found: dict[str, Verified], night: Night) -> None:
        told = bool(night.findings)
        for day in self.judged.keys() & found.keys():
            before, now = self.judged[day], int(bool(errors(found[day])))
            tampered = any(not each.undone for each in world.tampered)
            if now and not before and not told and not tampered:
                self._contradict(
                    world, f"{day} was clean, is not, and no night says so: {errors(found[day])[0]}"
                )
            touched = any(each.first <= day <= each.last for each in world.tampered)
            if before and not now and not touched:
                self._contradict(world, f"{day} was not clean, is clean, and no night judged it")

    def _contradict(self, world: World, text: str) -> None:
        self.contradictions.append(f"{world.today} {text}")


def errors(verified: Verified) -> list[Finding]:
    return [each for each in verified.findings if each.weight is Weight.ERROR]


def _allowed(known: list[Doubt], day: str) -> bool:
    return any(each.first <= day <= each.last for each in known)


def _dates(world: World) -> Iterator[str]:
    """The dates of which the archive has rows or seals."""
    for folder in (world.bucket, world.bucket / SEALS):
        for path in folder.glob("date=*"):
            yield path.name.removeprefix("date=")
