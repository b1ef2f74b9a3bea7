"""A world of some dates of one archive, random from a seed: gateways, faults, tampering, people."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from gateway.archive.findings import Finding
from gateway.archive.heads import head_path
from gateway.archive.layout import DAY, HOUR, SECOND, day_start, writer_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage, RemoteStorage, Storage
from gateway.errors import ArchiveError
from gateway.night.archive.acknowledged import acknowledge
from gateway.night.archive.retired import retire
from gateway.night.reconcile.nights.chain import read_chain
from tests.nights.model_of_dates.machines import (
    Disk,
    Fate,
    Fated,
    GatewayProcess,
    WorldClock,
    WrittenJournal,
    convert,
    date_text,
    fetch,
    waiting,
)
from tests.nights.model_of_dates.people import Backup, Removed, back_up, compact, forget
from tests.nights.model_of_dates.tampering import KINDS, Tampering

FIRST: Final = date(2026, 3, 1)
FIRST_TIME: Final = day_start(FIRST)
KEY: Final = b"a key of this archive"
SLOTS: Final = (5, 11, 17, 23)  # hours of a date in which something may happen


@dataclass(eq=False)
class Writer:
    """A gateway, or one of its instances, with the books of all that it wrote."""

    gateway: str
    instance: str
    disk: Disk
    books: list[WrittenJournal] = field(default_factory=list)
    process: GatewayProcess | None = None
    back_at: int = 0  # when it may start again
    retired: int | None = None  # when somebody said so
    others: list[Disk] = field(default_factory=list)  # of machines before this one

    @property
    def name(self) -> str:
        return writer_name(self.gateway, self.instance)

    @property
    def dead(self) -> bool:
        """Whether it ended without a stop."""
        return bool(self.books) and self.process is None and self.books[-1].end != "stopped"


@dataclass
class Traits:
    """The traits of a world; each share is that of a slot."""

    remote: bool
    keyed: bool
    setup: str  # `alone`, `two` or `pair`
    faults: float
    tampers: float
    nights: float  # share of the dates with a night
    retires: float
    absences: float  # share of ends that last for dates
    acknowledges: float  # share of nights after which somebody acknowledges their errors
    expects: bool  # whether each night is given the digest that the last one printed
    interrupts: float  # share of nights that are interrupted
    compacts: float  # share of the dates on which somebody compacts one
    keep_days: int  # older dates are removed; 0 keeps all
    spooled_days: int  # after which a copy in the spool is missing
    backups: float  # share of the dates on which somebody copies the bucket
    delivers: float  # share of the slots in which a spool delivers
    troubles: float = 0.0  # share of messages that do not arrive as they came


def traits_of(seed: int) -> Traits:
    rng = random.Random(f"traits {seed}")  # noqa: S311
    calm = rng.random() < 0.15
    return Traits(
        remote=rng.random() < 0.5,
        keyed=rng.random() < 0.5,
        setup=rng.choice(["alone", "two", "pair", "pair"]),
        faults=0.0 if calm else rng.choice([0.02, 0.06, 0.15]),
        tampers=0.0 if rng.random() < 0.6 else 0.05,
        nights=rng.choice([1.0, 1.0, 0.7, 0.3]),
        retires=rng.choice([0.0, 0.3]),
        absences=rng.choice([0.1, 0.4]),
        acknowledges=rng.choice([0.0, 0.3]),
        expects=rng.random() < 0.5,
        interrupts=rng.choice([0.0, 0.0, 0.2]),
        compacts=rng.choice([0.0, 0.3]),
        keep_days=rng.choice([0, 0, 2, 4, 9]),
        spooled_days=rng.choice([1, 3, 7]),
        backups=rng.choice([0.0, 0.1]),
        delivers=rng.choice([0.3, 0.3, 0.05]),
    )


class World:
    """The machines, the archive and the truth about them."""

    def __init__(self, folder: Path, seed: int, dates: int = 20, *, troubles: float = 0.0) -> None:
        self.rng = random.Random(seed)  # noqa: S311  # the same seed makes the same world
        self.traits = replace(traits_of(seed), troubles=troubles)
        self.folder, self.dates = folder, dates
        self.clock = WorldClock(day_start(FIRST) + 2 * HOUR)
        self.bucket = folder / "archive"
        self.bucket.mkdir(parents=True)
        self.url = self.bucket.as_uri() if self.traits.remote else ""
        self.key = KEY if self.traits.keyed else None
        self.bucket_away_until = 0
        self.log: list[str] = []
        self.tampered: list[Tampering] = []
        self.fates: list[Fated] = []
        self.leases: dict[str, int] = {}
        self.old_heads: dict[str, list[bytes]] = {}
        self.removals: list[Removed] = []  # that no whole night has seen
        self.removed_up_to = ""  # the date after the last one that was removed
        self.backup: Backup | None = None
        self.acknowledged: set[Finding] = set()
        self.removed: set[str] = set()  # journals that somebody removed before their conversion
        self._machines = 0
        self._shared = Disk(self.bucket)
        setup = self.traits.setup
        names = [("edge", "a"), ("edge", "b")] if setup == "pair" else [("edge", "")]
        names += [("west", "")] if setup == "two" else []
        self.writers = [Writer(name, instance, self._new_disk()) for name, instance in names]
        self.writers_by_gateway = {
            gateway: [each for each in self.writers if each.gateway == gateway]
            for gateway in dict.fromkeys(each.gateway for each in self.writers)
        }

    @property
    def storage(self) -> Storage:
        return RemoteStorage(self.url) if self.url else LocalStorage(self.bucket)

    @property
    def location(self) -> ArchiveLocation:
        """The archive as a night finds it, for which the journals in a bucket are out of reach."""
        return ArchiveLocation(self.folder / "no-machine" if self.url else self.bucket, self.url)

    @property
    def today(self) -> date:
        return FIRST + timedelta(days=(self.clock.now - day_start(FIRST)) // DAY)

    @property
    def has_nights(self) -> bool:
        return any((self.bucket / "_nights").glob("[1-9]*.json"))

    @property
    def journals(self) -> Iterator[WrittenJournal]:
        for writer in self.writers:
            yield from writer.books

    @property
    def hidden(self) -> set[str]:
        """The stems of the journals whose seals somebody holds back, or changed."""
        due = [each for each in self.tampered if not each.undone]
        return {stem for each in due for stem in (*each.stems, *(path.stem for path in each.paths))}

    def say(self, text: str) -> None:
        moment = self.clock.now
        self.log.append(f"{date_text(moment)} {moment % DAY / HOUR:05.2f} {text}")

    # Time

    def run(self, night: Callable[[World], None]) -> None:
        """Let all dates pass; `night` is called after those of which somebody runs it."""
        for number in range(self.dates):
            begin = day_start(FIRST + timedelta(days=number))
            self._midnight(begin)
            self._keep_heads()
            if number and self.rng.random() < self.traits.nights and not self.bucket_away:
                night(self)
                self._people()
            if number and not self.bucket_away:
                self._housekeeping()
            for hour in SLOTS:
                self.clock.now = begin + hour * HOUR + self.rng.randrange(3000) * SECOND
                self._tick()
                self._slot()
        self._midnight(day_start(FIRST + timedelta(days=self.dates)))
        self.bucket_away_until = 0
        night(self)

    def heal(self) -> None:
        """End what can end: machines come back, people put back what they changed, all stop."""
        self.bucket_away_until = 0
        for each in self.tampered:
            self._undo(each)
        for writer in self.writers:
            for disk in [*writer.others, writer.disk]:
                disk.away = False
                self._convert(writer, disk)
        for instances in self.writers_by_gateway.values():
            self._stop_all(instances)

    def _stop_all(self, instances: Sequence[Writer]) -> None:
        for writer in instances:
            if writer.process is not None and writer.process.frozen_since is not None:
                self._wake(writer)
            elif writer.process is not None:
                self._stop(writer)
        for writer in instances:
            if writer.books:
                self.clock.now += HOUR
                self._start(writer, upload=True)
                self._stop(writer)

    def next_date(self) -> None:
        """Go on to the night after: a journal of today is evidence of that one."""
        self._midnight(day_start(self.today + timedelta(days=1)))

    def _keep_heads(self) -> None:
        for writer in self.writers:
            path = self.bucket / head_path(writer.name)
            changed = any(each.writer == writer.name for each in self.tampered)
            if path.exists() and not changed:
                self.old_heads.setdefault(writer.name, []).append(path.read_bytes())

    @property
    def bucket_away(self) -> bool:
        return self.clock.now < self.bucket_away_until

    def _midnight(self, begin: int) -> None:
        for after in (5 * SECOND, HOUR + 10 * SECOND, 2 * HOUR + 20 * SECOND):
            self.clock.now = max(self.clock.now, begin + after)
            self._tick()
        self.clock.now = begin + 3 * HOUR

    def _tick(self) -> None:
        for writer in self.writers:
            if writer.process is not None and writer.process.frozen_since is None:
                writer.process.tick()
                self._convert(writer)

    # Slots

    def _slot(self) -> None:
        rng = self.rng
        if self.url and rng.random() < self.traits.faults / 3 and not self.bucket_away:
            self.bucket_away_until = self.clock.now + rng.choice([3, 9, 30]) * HOUR
            self.say("the bucket is away")
        for instances in self.writers_by_gateway.values():
            self._gateway(instances)
        if rng.random() < self.traits.tampers:
            self._tamper()
        for each in self.tampered:
            if not each.undone and rng.random() < 0.1:
                self._undo(each)
        self._disks_return()

    def _gateway(self, instances: list[Writer]) -> None:
        rng, now = self.rng, self.clock.now
        frozen = [each for each in instances if each.process and each.process.frozen_since]
        for each in frozen:
            if rng.random() < 0.5:
                self._wake(each)
        active = [each for each in instances if each.process and each not in frozen]
        ready = [each for each in instances if each.process is None and each.back_at <= now]
        if active and rng.random() < self.traits.faults:
            self._end(active[0], [each for each in instances if each.process is None])
        elif active:
            self._work(active[0])
        elif ready:
            self._start(rng.choice(ready))

    def _work(self, writer: Writer) -> None:
        process, rng = writer.process, self.rng
        assert process is not None
        if rng.random() < 0.15:
            process.write(rng.randint(1, 4))
        self._trouble(writer)
        if rng.random() < 0.1:
            process.roll()
            self._convert(writer)
            if rng.random() < 0.5:
                process.write(1)

    def _end(self, writer: Writer, others: Sequence[Writer]) -> None:
        """End a process in some way; another instance, if there is one, takes the lease."""
        process, rng = writer.process, self.rng
        assert process is not None
        ends: list[Callable[[Writer], None]] = [
            self._stop, self._kill, self._kill_after_the_trailer, self._kill_before_the_head,
        ]  # fmt: skip
        ends += [self._lose_machine] if self.url else [self._lose_open_journal]
        ends += [self._freeze] if others and writer.instance else []
        if rng.random() < 0.5:
            process.write(rng.randint(1, 3))
        rng.choice(ends)(writer)
        lasting = rng.random() < self.traits.absences
        pause = rng.choice([1, 2, 3, 5]) * DAY if lasting else rng.choice([0, 3, 9]) * HOUR
        writer.back_at = self.clock.now + pause
        if others and rng.random() < 0.8:
            self.clock.now += rng.choice([2, 15, 300]) * SECOND
            self._start(rng.choice(others))

    def _trouble(self, writer: Writer) -> None:
        """Something goes wrong with a message, at its target or on the way."""
        process, rng = writer.process, self.rng
        assert process is not None
        for each in self.fates:
            own = each.journal.writer == writer.name and each.journal.disk is writer.disk
            waits = each.fate is Fate.SPOOLED and each.delivered is None
            if own and waits and rng.random() < self.traits.delivers:
                process.deliver(each)
                self.say(f"{writer.name} delivers what came {date_text(each.at)}")
        if rng.random() < self.traits.troubles:
            fate = rng.choice([each for each in Fate if each is not Fate.DELIVERED])
            process.write(1)  # a tap begins with its first message
            process.write(rng.randint(1, 2), fate)
            self.say(f"{writer.name}: a message is {fate.value}")

    # A process and its end

    def _start(self, writer: Writer, *, upload: bool | None = None) -> None:
        rng = self.rng
        if self.url and (writer.disk.lost or writer.disk.away or rng.random() < 0.05):
            if not writer.disk.lost:
                writer.disk.away = True
            writer.others.append(writer.disk)
            writer.disk = self._new_disk()
        self._head_is_another(writer, date_text(FIRST_TIME))
        is_new = not (writer.disk.root / head_path(writer.name)).exists()
        fetched = False
        if self.url and (writer.instance or is_new) and not self.bucket_away:
            fetched = fetch(writer.disk, self.url, self.key, writer.name)
        lease = 0
        if writer.instance:
            lease = self.leases[writer.gateway] = self.leases.get(writer.gateway, 0) + 1
        behind = HOUR if rng.random() < 0.1 else 0
        writer.process = GatewayProcess(
            self.clock, writer.disk, self.url, writer.gateway, writer.instance, self.key,
            writer.books, self.fates, lease, behind,
        )  # fmt: skip
        if not self.url:
            writer.retired = None
        self.say(
            f"{writer.name} starts as {writer.process.journal.stem} on {writer.disk.root.name}"
            f"{' with a new disk' if is_new else ''}{', fetched' if fetched else ''}"
            f"{', clock behind' if behind else ''}"
        )
        if upload or (upload is None and rng.random() < 0.9):
            self._convert(writer)

    def _stop(self, writer: Writer) -> None:
        assert writer.process is not None
        writer.process.stop()
        writer.process = None
        self.say(f"{writer.name} stops")
        self._convert(writer)

    def _kill(self, writer: Writer, how: str = "kill") -> None:
        assert writer.process is not None
        getattr(writer.process, how)()
        writer.process = None
        self.say(f"{writer.name} is killed ({how})")

    def _kill_after_the_trailer(self, writer: Writer) -> None:
        self._kill(writer, "kill_after_the_trailer")

    def _kill_before_the_head(self, writer: Writer) -> None:
        self._kill(writer, "kill_before_the_head")

    def _lose_machine(self, writer: Writer) -> None:
        self._kill(writer)
        if self.rng.random() < 0.3:
            writer.disk.away = True
            self.say(f"the machine of {writer.name} is off")
            return
        shutil.rmtree(writer.disk.root)
        writer.disk.lost = True
        self.say(f"the disk {writer.disk.root.name} of {writer.name} is lost")

    def _lose_open_journal(self, writer: Writer) -> None:
        """Kill a gateway, and remove its journal before anybody converts it."""
        self._kill(writer)
        for path in waiting(writer.disk, writer.name):
            path.unlink()
            path.with_suffix(".ack").unlink(missing_ok=True)
            self.removed.add(path.stem)
        self.say(f"the journals of {writer.name} are removed")

    def _freeze(self, writer: Writer) -> None:
        assert writer.process is not None
        writer.process.frozen_since = self.clock.now
        self.say(f"{writer.name} is frozen")

    def _wake(self, writer: Writer) -> None:
        process = writer.process
        assert process is not None
        self.say(f"{writer.name} wakes up")
        if self.rng.random() < 0.7:
            process.answer_late(self.rng.randint(1, 3))
        self._stop(writer)

    def _convert(self, writer: Writer, disk: Disk | None = None) -> None:
        """Convert what is closed on the disk of a writer, and upload, where the archive answers."""
        disk = disk or writer.disk
        if disk.lost or disk.away or (self.url and self.bucket_away):
            return
        open_path = None
        if writer.process is not None and writer.process.disk is disk:
            open_path = f"{writer.process.journal.stem}.open"
        paths = [each for each in waiting(disk, writer.name) if each.name != open_path]
        if not paths and not self.url:
            return
        convert(disk, self.url, self.key, paths)
        if self.url:
            last = next((each for each in reversed(writer.books) if each.disk is disk), None)
            stopped = last is None or last.end == "stopped"
            disk.named[writer.name] = None if stopped or last is None else last.index
            if last is not None and last.opened > (writer.retired or 0):
                writer.retired = None  # its head says that it came back
        self.note_archived()

    def note_archived(self) -> None:
        """Write into the books which journals a converter took."""
        for each in self.journals:
            if not each.archived and not each.disk.lost and each.end != "open":
                path = each.disk.root / ".journal" / f"{each.stem}.open"
                each.archived = not path.exists() and each.stem not in self.removed

    def _disks_return(self) -> None:
        for writer in self.writers:
            for disk in writer.others:
                if disk.away and self.rng.random() < 0.05 and not self.bucket_away:
                    disk.away = False
                    self.say(f"the disk {disk.root.name} of {writer.name} comes back")
                    self._convert(writer, disk)
                    self._convert(writer)  # its head takes its place again
            if writer.disk.away and self.rng.random() < 0.1:
                writer.disk.away = False
                self.say(f"the machine of {writer.name} is on again")

    # People

    def _people(self) -> None:
        for writer in self.writers:
            if writer.dead and self.rng.random() < self.traits.retires:
                if any(each.process for each in self.writers_by_gateway[writer.gateway]):
                    continue
                try:
                    retire(self.storage, writer.name, "sold", self.clock.now, self.key)
                except ArchiveError:
                    continue
                writer.retired = self.clock.now
                self.say(f"{writer.name} is retired")

        if self.rng.random() < self.traits.acknowledges:
            for each in read_chain(self.storage, self.key).newest.findings:
                with suppress(ArchiveError):
                    found = acknowledge(
                        self.storage, each.rule, each.place, "known", self.clock.now, self.key
                    )
                    self.acknowledged.update(found)
                    self.say(f"{each.rule} {each.place} is acknowledged")

    def _housekeeping(self) -> None:
        if self.rng.random() < self.traits.backups:
            back_up(self)
        if self.rng.random() < self.traits.compacts:
            compact(self)
        if self.traits.keep_days and self.rng.random() < 0.5:
            forget(self)

    def _tamper(self) -> None:
        if self.bucket_away:
            return
        made = self.rng.choice(KINDS)(self)
        if made is not None:
            self.tampered.append(made)
            self.say(f"{made.kind}: {', '.join(path.name for path in made.paths)}")

    def _head_is_another(self, writer: Writer, begin: str) -> None:
        """A process goes on from a head that somebody changed: its chain may break for ever."""
        for each in self.tampered:
            if each.writer == writer.name and not each.undone:
                each.undone = True
                if not self.url:  # a buffer has a head of its own
                    last = date_text(self.clock.now + DAY)
                    self.tampered.append(
                        Tampering("a chain from another head", begin, last, frozenset(), bool)
                    )

    def _undo(self, each: Tampering) -> None:
        if not each.undone:
            each.undone = each.undo()
            self.say(f"{each.kind} is {'taken back' if each.undone else 'not taken back'}")

    def _new_disk(self) -> Disk:
        if not self.url:
            return self._shared
        self._machines += 1
        disk = Disk(self.folder / f"machine-{self._machines}")
        disk.root.mkdir()
        return disk
