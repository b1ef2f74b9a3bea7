"""Judges the archive of a world as its people do, and compares the verdicts with the truth."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import pytest

from gateway.archive.findings import Finding, Weight
from gateway.archive.layout import NEVER_WRITTEN, days_in, parse_journal_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import Storage
from gateway.errors import ReconcileError
from gateway.model.copy_class import CopyClass
from gateway.night.archive.night_record import Night
from gateway.night.archive.open_archive import OpenArchive, opened_at
from gateway.night.archive.seals.evidence import Evidence, read_evidence
from gateway.night.archive.segments.convert import convert_abandoned
from gateway.night.archive.verification.verify import Verified, verify_day
from gateway.night.reconcile.job import Job
from gateway.night.reconcile.nights import run
from gateway.night.reconcile.nights.marker import mark
from gateway.night.reconcile.nights.run import NightRun, run_night
from gateway.night.reconcile.nights.witness import state_night
from gateway.night.reconcile.nights.writer_findings import TOLD_ONCE
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.rows import Rows
from tests.nights.model_of_dates.machines import Fate, WrittenJournal, date_text
from tests.nights.model_of_dates.people import Removed
from tests.nights.model_of_dates.tampering import NIGHTS_REMOVED, PUT_BACK
from tests.nights.model_of_dates.truth import Doubt, Loss, doubts, losses, stored_dates
from tests.nights.model_of_dates.worlds import FIRST, World

ONE_DAY = timedelta(days=1)


def archive_of(world: World) -> OpenArchive:
    """The archive of the world: a folder, which is reached as a bucket is where it has a URL."""
    return opened_at(ArchiveLocation(world.location.local, world.url), world.key)


def job_of(world: World) -> Job:
    """The job of a night of the world."""
    return Job(now=world.clock.now, spooled_days=world.traits.spooled_days)


class NightKilledError(BaseException):
    """The end of a night at some step."""


@dataclass
class Judge:
    """The verdicts of a world so far, and what contradicts the truth.

    `judged` and `flight` are by date the last verdict and its copies in flight; `proofs` are the
    journals that were there at one of its verdicts.
    """

    contradictions: list[str] = field(default_factory=list)
    verified: int = 0
    nights: int = 0
    judged: dict[str, int] = field(default_factory=dict)
    flight: dict[str, int] = field(default_factory=dict)
    proofs: dict[str, frozenset[str]] = field(default_factory=dict)
    alarms: list[Finding] = field(default_factory=list)  # of the last night
    _since: dict[str, int] = field(default_factory=dict)  # what nights said to nobody
    _now: set[str] = field(default_factory=set)  # the dates of this run
    _left: int | None = None  # steps until this night is interrupted
    _printed: str | None = None  # the digest of the last night that ended well
    _removed: list[tuple[Removed, int, frozenset[str]]] = field(default_factory=list)
    _gone: set[str] = field(default_factory=set)  # dates that were removed
    _told: set[str] = field(default_factory=set)  # journals whose late rows a night has told
    _doubted: list[Doubt] = field(default_factory=list)
    _seals: dict[tuple[object, ...], Evidence] = field(default_factory=dict)
    _rng: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311

    def night(self, world: World, *, whole: bool = False) -> None:
        """Do what `gateway reconcile` does without comparing rows, then check the verdicts."""
        self._night(world, whole=whole, again=False)

    def _night(self, world: World, *, whole: bool, again: bool) -> None:
        self.nights += 1
        if not world.url:
            convert_abandoned(opened_at(world.location, world.key))
            world.note_archived()
        ends = not whole and self._rng.random() < world.traits.interrupts
        self._left, self._now = self._rng.randint(1, 6) if ends else None, set()
        found = self.verify(world, whole=whole)
        missing = _missing_nights(world)
        self._note_removals(world)
        try:
            made = self._run(world, found)
        except NightKilledError:
            world.say("the night is interrupted")
            if self._rng.random() < 0.5:
                self._night(world, whole=whole, again=True)
            else:
                self._recorded(world)
            return
        if made is None:
            return
        self._acknowledged(world, made.link.findings, made.run.findings)
        self.alarms = list(made.run.errors)
        self._compare(world, found, made.link, missing=missing)
        self._taken_back(world, found, made.link)
        self._complete(world, made, again=again)
        self._printed = made.link.mac

    def _recorded(self, world: World) -> None:
        """Take the record of a run that judged all its dates as told: no later day repeats it."""
        paths = (world.bucket / "_nights").glob("[1-9]*.json")
        newest = max(paths, key=lambda path: int(path.stem), default=None)
        night = None if newest is None else Night.from_json(newest.read_bytes())
        if night is None or night.at != world.clock.now:
            return
        if all(each.status >= 0 for each in night.dates if each.date < night.until):
            self._forgotten(world, night)
            self._since.clear()

    def _run(self, world: World, found: dict[str, Verified]) -> NightRun | None:
        """Run the night with a verification in the place of Spark's job."""
        expect = self._printed if world.traits.expects else None

        def reconciled(  # those of `reconcile`
            archive: OpenArchive, date: date, _: Job, _show: object, carried: Rows = ()
        ) -> Report:
            self._step()
            day = str(date)
            if day not in found:
                found.update(self._verify_one(world, day))
            waiting, missing = copies_left(world, day)
            rows = [{CopyClass.IN_FLIGHT.value: waiting, CopyClass.MISSING.value: missing}]
            return Report(archive.name, date, errors(found[day]), routes=rows, carried=carried)

        def stated(storage: Storage, day: date, night: Night, seal_key: bytes | None) -> None:
            """The link of the date is written: from now on its verdict is known."""
            key = str(day)
            self._now.add(key)
            self.judged[key] = self._since[key] = int(bool(errors(found[key])))
            self.flight[key], _missing = copies_left(world, key)
            there = frozenset(each.stem for each in journals_of(world, key))
            self.proofs[key] = self.proofs.get(key, frozenset()) | (there - world.hidden)
            self._step()
            state_night(storage, day, night, seal_key)

        def marked(storage: Storage, day: date, nights: Sequence[Night]) -> None:
            self._step()
            mark(storage, day, nights)

        archive = replace(archive_of(world), read_seal=partial(self._read, world))
        with pytest.MonkeyPatch.context() as patch:
            for name, function in {
                "reconcile": reconciled, "state_night": stated, "mark": marked,
                "spark_session": lambda *_, **__: nullcontext(),
            }.items():  # fmt: skip
                patch.setattr(run, name, function)
            try:
                made = run_night(archive, job_of(world), lambda *_: None, expect)
            except ReconcileError as fault:
                if NEVER_WRITTEN in str(fault) and _never_written(world):
                    return None
                known = expect is None or _has_night(world, expect)
                if known or "rolled back" not in str(fault):
                    raise
                self._printed = None  # somebody looked, and begins again
                return None
        if expect is not None and not _has_night(world, expect):
            self._contradict(world, f"the expected night {expect} is gone, and no night says so")
        return made

    def _step(self) -> None:
        if self._left is not None:
            self._left -= 1
            if not self._left:
                raise NightKilledError

    def verify(self, world: World, *, whole: bool = False) -> dict[str, Verified]:
        """Verify the dates that may have changed, and one other; all of them when `whole`."""
        folder = None if world.url else world.bucket
        first = max(min(stored_dates(world), default=str(world.today)), str(FIRST))
        begin = date.fromisoformat(first)
        closed = [begin + number * ONE_DAY for number in range((world.today - begin).days)]
        if not closed:
            return {}
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

    def _read(self, world: World, path: Path) -> Evidence:
        """Read a seal, unless its file is the one that was read before."""
        with suppress(FileNotFoundError):
            facts = (world.bucket / path).stat()
            key = (path, facts.st_mtime_ns, facts.st_size, facts.st_ino)
            if key not in self._seals:
                self._seals[key] = read_evidence(world.storage, world.key, path)
            return self._seals[key]
        return read_evidence(world.storage, world.key, path)

    def _acknowledged(
        self, world: World, findings: Sequence[Finding], shown: Sequence[Finding]
    ) -> None:
        """All findings are shown, and exactly those that somebody acknowledged are not errors."""
        for finding, each in zip(findings, shown, strict=True):
            known = finding in world.acknowledged
            if known and (each.weight is Weight.ERROR or "(acknowledged: known)" not in each.text):
                self._contradict(world, f"somebody acknowledged, and the night shows: {each}")
            if not known and each != finding:
                self._contradict(world, f"nobody acknowledged {finding}, and the night does")

    def _compare(
        self, world: World, found: dict[str, Verified], night: Night, *, missing: bool
    ) -> None:
        lost: dict[str, list[Loss]] = defaultdict(list)
        for each in losses(world):
            lost[each.date].append(each)
        known = list(doubts(world))
        for day, verified in found.items():
            bad = errors(verified)
            if lost[day] and not bad and day >= world.removed_up_to:
                self._contradict(world, f"{day} is clean, and {lost[day][0].why}")
            if bad and not _allowed(known, day):
                self._contradict(world, f"{day} is not clean without a cause: {bad[0]}")
        # The night after records came back sees that the newest one does not follow them.
        again = any(each.kind == NIGHTS_REMOVED for each in world.tampered)
        rules = {*TOLD_ONCE, *(("forged-night", "forged-marker") if again else ())}
        alarms = [each for each in self.alarms if each.rule not in rules]
        if alarms and not known:
            self._contradict(world, f"the night has an error without a cause: {alarms[0]}")
        if missing and not any(e.rule == "missing-night" for e in night.findings):
            self._contradict(world, "the records of nights are removed, and no night says so")
        if _forged_removal(world) and not any(e.rule == "forged-removal" for e in night.findings):
            self._contradict(world, "the statement of a removal is forged, and no night says so")
        due = [e for e in world.tampered if not e.undone and e.day >= world.removed_up_to]
        removed = {stem for each in due for stem in each.stems}
        for name in filter(None, map(parse_journal_name, sorted(removed))):
            silent = name.writer in {each.name for each in world.writers if each.retired}
            if night.has_judged(name) and not night.findings and not silent:
                self._contradict(world, f"the seal of {name} is another one, and no night says so")

    def _taken_back(self, world: World, found: dict[str, Verified], night: Night) -> None:
        told, known = bool(night.findings), list(doubts(world))
        for day in self.judged.keys() & found.keys():
            before, now = self.judged[day], int(bool(errors(found[day])))
            tampered = any(not each.undone for each in world.tampered)
            if now and not before and not told and not tampered:
                self._contradict(
                    world, f"{day} was clean, is not, and no night says so: {errors(found[day])[0]}"
                )
            touched = any(each.first <= day <= each.last for each in world.tampered)
            healed = before and not now and not touched and not _allowed(known, day)
            if healed:
                self._contradict(world, f"{day} was not clean, is clean, and no night judged it")

    def _complete(self, world: World, made: NightRun, *, again: bool) -> None:
        """Check what a night that ended well has judged, and told."""
        kept = {str(day) for day in days_in(world.storage.names(Path()))}
        closed = sorted(day for day in kept if day < str(world.today))
        results = world.bucket / "_reconciled"
        same = all(each.kind != PUT_BACK for each in world.tampered)  # as this judge knows it
        for day in closed:
            if not (results / f"date={day}" / "night.json").exists():
                self._contradict(world, f"{day} has no results after a night")
            if same and self.flight.get(day) and day not in self._now and not again:
                self._contradict(world, f"{day} has copies in flight, and was not judged again")
        hidden = world.hidden
        for day in closed:
            new = {each.stem for each in journals_of(world, day)} - self.proofs.get(day, set())
            if same and new - hidden:
                self._contradict(
                    world, f"{day} has rows in {min(new - hidden)} that no night judged"
                )
        kinds = {each.kind for each in world.tampered}
        sure = again or not kinds & {NIGHTS_REMOVED, PUT_BACK}
        unsaid = {day for day, is_bad in self._since.items() if is_bad and day not in self._gone}
        if sure and unsaid and made.run.status != 1:
            self._contradict(world, f"the verdict of {min(unsaid)} is not told after an interrupt")
        self._forgotten(world, made.link)
        self._since.clear()

    def _forgotten(self, world: World, night: Night) -> None:
        """Check that the night tells which dates were removed too early, and what came later."""
        told = {each.place for each in night.findings if each.rule in TOLD_ONCE}
        kinds = {each.kind for each in world.tampered}
        sure = night.n > 1 and not kinds & {NIGHTS_REMOVED, PUT_BACK}
        for each, waited, proven in self._removed:
            if sure and (waited or each.stems - proven) and f"date={each.day}" not in told:
                self._contradict(world, f"{each.day} was removed too early, and no night says so")
            kept = str(each.on - (world.traits.spooled_days + 1) * ONE_DAY)
            if sure and waited and each.day >= kept:
                self._contradict(world, f"{each.day} was removed, and had copies in flight")
        self._removed.clear()
        touched = {path.stem for each in world.tampered for path in each.paths}
        for day in self._gone - self._since.keys():  # one whose rows are back has a verdict
            late = {each.stem for each in journals_of(world, day)} - self._told - touched
            if sure and late and f"date={day}" not in told:
                self._contradict(world, f"{min(late)} has rows of {day}, and no night says so")
        for day in self._gone:
            self._told |= {each.stem for each in journals_of(world, day)}

    def _note_removals(self, world: World) -> None:
        """Keep what the last verdicts of the dates were that were removed since."""
        for each in world.removals:
            self._gone.add(each.day)
            self._told |= each.stems
            proven = self.proofs.pop(each.day, frozenset())
            self._removed.append((each, self.flight.pop(each.day, 0), proven))
            self.judged.pop(each.day, None)
        world.removals.clear()

    def _contradict(self, world: World, text: str) -> None:
        self.contradictions.append(f"{world.today} {text}")


def journals_of(world: World, day: str) -> Iterator[WrittenJournal]:
    """The journals in the archive with messages of a date."""
    for each in world.journals:
        if each.archived and day in each.dates:
            yield each


def copies_left(world: World, day: str) -> tuple[int, int]:
    """The copies of a date that are in a spool by the archive, and those too old for that."""
    found = 0
    for each in world.fates:
        arrived = each.delivered is not None and each.delivered.archived
        if each.fate is Fate.SPOOLED and date_text(each.at) == day and each.journal.archived:
            found += 0 if arrived else len(each.copies)
    young = day >= str(world.today - world.traits.spooled_days * ONE_DAY)
    return (found, 0) if young else (0, found)


def _never_written(world: World) -> bool:
    """Whether nothing reached the archive: a machine was lost before its first upload."""
    disks = (disk for writer in world.writers for disk in (*writer.others, writer.disk))
    return not any(disk.named for disk in disks) and not any(e.archived for e in world.journals)


def _has_night(world: World, digest: str) -> bool:
    return any(digest in path.read_text() for path in (world.bucket / "_nights").glob("*.json"))


def _forged_removal(world: World) -> bool:
    paths = (world.bucket / "_removed").glob("*.json")
    return any(json.loads(path.read_bytes())["before"] != path.stem for path in paths)


def _missing_nights(world: World) -> bool:
    """Whether a later record, or the results of a date that it judged, names a record."""
    numbers = {int(path.stem) for path in (world.bucket / "_nights").glob("[1-9]*.json")}
    stated = world.bucket.glob("_reconciled/date=*/night.json")
    last = max([*numbers, *(json.loads(each.read_bytes())["night"] for each in stated)], default=0)
    return len(numbers) < last


def errors(verified: Verified) -> list[Finding]:
    return [each for each in verified.findings if each.weight is Weight.ERROR]


def _allowed(known: list[Doubt], day: str) -> bool:
    return any(each.first <= day <= each.last for each in known)
