"""One run: twenty dates of traffic, faults and nights in cron order, all from one seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.models.nights.reference import Nights, Order
from tests.models.nights.store import DAY, Record
from tests.models.nights.truth import Truth
from tests.models.nights.world import World, Writer

DATES: Final = 20
FATES: Final = ("delivered",) * 8 + ("marked", "dead", "spooled", "split", "lost", "doubled")
WorldMaker = Callable[[Random, int], World]


class Run:
    """A world, its nights, and what happened in words."""

    def __init__(self, seed: int, nights: Nights, make_world: WorldMaker = World) -> None:
        self._random = Random(seed)  # noqa: S311
        self._nights = nights
        self.world = make_world(self._random, self._random.randint(1, 4))
        self.lines: list[str] = []
        self.contradictions: list[str] = []
        self._spooled_days = self._random.randint(1, 5)
        self._keep_days = self._random.choice([2, 4, 8, 30])
        self._expects = self._random.random() < 0.5
        self._trouble = self._random.choice([0.0, 0.02, 0.06])
        self._outage_until = 0
        self._backup = (0, self.world.archive.copy())
        self._truth = Truth(self.world, self._spooled_days)
        self._printed: Record | None = None  # the newest link, kept elsewhere

    def run(self) -> list[str]:
        """Run all dates; return the contradictions, none after the first bad night."""
        for date in range(DATES):
            for hour in (1, 2, 7, 13, 19, 23):
                self.world.now = date * DAY + hour * 60
                if hour == 2 and date:
                    self._night(date)
                    if self.contradictions:
                        return self.contradictions
                self._work(midnight=hour == 1)
                self._fault()
        return self.contradictions

    def _work(self, *, midnight: bool) -> None:
        random, world = self._random, self.world
        for writer in world.writers:
            if not writer.running and random.random() < 0.5:
                world.start(writer)
            if midnight:
                world.roll(writer)
            for _ in range(random.randint(0, 3)):
                world.receive(writer, self._fate())
            if random.random() < 0.3:
                world.drain(writer)
            if random.random() < 0.05:
                self._late_row(writer)
            if random.random() < 0.5:
                world.roll(writer)
            if random.random() < 0.06:
                world.stop(writer)
            world.upload(writer)
            if self._trouble and random.random() < 0.1:
                self._retire(writer)

    def _fate(self) -> str:
        if self._trouble == 0.0:
            return self._random.choice(FATES[:12])
        return self._random.choice((*FATES, "unexpected"))

    def _late_row(self, writer: Writer) -> None:
        """Deliver a message of an earlier date again, without a mark."""
        own = [copy for copy in self.world.copies.values() if copy.writer == writer.name]
        old = [copy for copy in own if copy.unmarked == 1 and not copy.unexpected]
        if self._trouble and writer.journal and old:
            copy = self._random.choice(old)
            self._say(f"copy {copy.number} is delivered again by {writer.name}")
            self.world.deliver(writer, copy)

    def _night(self, date: int) -> None:
        archive = self.world.archive
        order = Order(date * DAY, self._spooled_days, self._printed if self._expects else None)
        if self._random.random() < 0.5:
            self._truth.before_forgetting()
            self._nights.forget(archive, order, self._keep_days)
            self._truth.after_forgetting()
        if self.world.now < self._outage_until:
            return
        if self._random.random() < 0.5:
            self._compact(date - 1)
        if self._random.random() < self._trouble:
            self._say("the night is interrupted")
            self._interrupted(order)
            return
        record = self._nights.run(archive, order)
        self._printed = record
        self._say(_in_words(record))
        self.contradictions = self._truth.contradictions(record)
        self._truth.expects = None  # somebody looked, and begins again

    def _interrupted(self, order: Order) -> None:
        """Leave some results of a night without its link."""
        archive = self.world.archive
        links, results = list(archive.nights), dict(archive.results)
        record = self._nights.run(archive, order)
        archive.nights = links
        kept = {date for date in record.judged if self._random.random() < 0.5}
        archive.results = results | {date: results[date] for date in kept if date in results}

    def _compact(self, date: int) -> None:
        archive = self.world.archive
        keys = [key for key in archive.segments if key[1] == date]
        merged = archive.merged.setdefault(date, {})
        for key in keys:
            merged[key[0]] = archive.segments.pop(key)

    def _fault(self) -> None:
        random, archive = self._random, self.world.archive
        if random.random() < 0.15:
            self._backup = (self.world.now, archive.copy())
        if random.random() < 0.1:
            self.world.step_clock(random.choice(self.world.writers))
        if random.random() >= self._trouble * 3:
            return
        fault = random.choice(_FAULTS)
        writer = random.choice(self.world.writers)
        self._say(f"{fault.__name__} ({writer.name})")
        fault(self, writer)

    def _say(self, line: str) -> None:
        self.lines.append(f"{self.world.now // DAY:2} {self.world.now % DAY // 60:02}h  {line}")

    def kill(self, writer: Writer) -> None:
        self.world.kill(writer)

    def lose_open_journal(self, writer: Writer) -> None:
        self.world.kill(writer)
        writer.killed = None
        self.world.lose_spool(writer)

    def lose_spool(self, writer: Writer) -> None:
        self.world.lose_spool(writer)

    def lose_closed_journals(self, writer: Writer) -> None:
        writer.buffer.clear()

    def lag(self, writer: Writer) -> None:
        writer.lags_until = self.world.now + self._random.randint(1, 6) * DAY

    def lose_seal(self, writer: Writer) -> None:
        self._lose(self.world.archive.seals, writer.name)

    def lose_segment(self, writer: Writer) -> None:
        self._lose(self.world.archive.segments, writer.name)

    def _lose(self, files: dict, name: str) -> None:  # type: ignore[type-arg]
        own = sorted(key for key in files if name in {key[0], key[0][0]})
        if own:
            del files[self._random.choice([own[-1], self._random.choice(own)])]

    def lose_head(self, writer: Writer) -> None:
        self.world.archive.heads.pop(writer.name, None)

    def lose_all_but_routes(self, writer: Writer) -> None:
        archive, name = self.world.archive, writer.name
        archive.heads.pop(name, None)
        archive.seals = {p: seal for p, seal in archive.seals.items() if p[0] != name}

    def roll_back_writer(self, writer: Writer) -> None:
        archive, old, name = self.world.archive, self._backup[1].copy(), writer.name
        if name not in old.heads:
            return
        archive.heads[name] = old.heads[name]
        for place in [place for place in archive.seals if place[0] == name]:
            if place not in old.seals:
                del archive.seals[place]

    def roll_back_archive(self, writer: Writer) -> None:
        del writer
        archive, old = self.world.archive, self._backup[1].copy()
        self._truth.gone |= set(archive.seals)
        self._truth.gone |= {
            p
            for judged in archive.nights[-1:]
            for d in judged.dates.values()
            for p, _ in d.evidence
        }
        self.world.archive = old
        self._expect_the_printed()
        self._truth.forget_words()

    def _expect_the_printed(self) -> None:
        gone = self._printed and self._printed not in self.world.archive.nights
        self._truth.expects = self._printed if self._expects and gone else None

    def delete_results(self, writer: Writer) -> None:
        del writer
        self.world.archive.results.clear()
        self._truth.results_deleted = True

    def remove_night(self, writer: Writer) -> None:
        del writer
        if self.world.archive.nights:
            self.world.archive.nights.pop()
            self._truth.link_removed = True
            self._expect_the_printed()

    def outage(self, writer: Writer) -> None:
        del writer
        self._outage_until = self.world.now + self._random.randint(2, 6) * DAY

    def _retire(self, writer: Writer) -> None:
        """Retire a writer that is silent."""
        archive = self.world.archive
        head = archive.heads.get(writer.name)
        silent = head and head.open is not None and head.closed_at < self.world.now - 2 * DAY
        if silent and archive.retired.get(writer.name) != head:
            self._say(f"{writer.name} is retired")
            archive.retired[writer.name] = head


_FAULTS: Final = (
    Run.kill,
    Run.lose_open_journal,
    Run.lose_spool,
    Run.lose_closed_journals,
    Run.lag,
    Run.lose_seal,
    Run.lose_segment,
    Run.lose_head,
    Run.lose_all_but_routes,
    Run.roll_back_writer,
    Run.roll_back_archive,
    Run.delete_results,
    Run.remove_night,
    Run.outage,
)


def _in_words(record: Record) -> str:
    named = ", ".join(sorted(f"{f.rule} {f.subject} {f.number or ''}" for f in record.findings))
    unclean = [date for date in sorted(record.judged) if not record.dates[date].clean]
    verdict = "clean" if record.clean else "not clean"
    back = f"; taken back {sorted(record.taken_back)}" if record.taken_back else ""
    return (
        f"night {record.number}: {verdict}; judged {sorted(record.judged)}; "
        f"not clean {unclean}; {named or 'nothing named'}{back}"
    )
