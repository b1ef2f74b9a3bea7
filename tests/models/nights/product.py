"""The nights of the product in the world of the model: its core plans, the model judges rows.

The core decides which dates are judged, what a link remembers, and which errors belong to no
date. The chains of the dates that it judges, the classes of their copies, the chain of the links
themselves and the words about a clean that is taken back are those of the reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from gateway.archive.findings import Finding as NightFinding
from gateway.archive.layout import JournalName, day_start, parse_journal_name
from gateway.archive.signed_json import Previous
from gateway.night.archive.night_record import NO_NIGHT, HeadSeen, Night
from gateway.night.reconcile.nights.plan import plan_night, with_verdict
from gateway.night.reconcile.nights.world import NewJournal, World
from tests.models.nights.reference import Nights, Order
from tests.models.nights.store import DAY, Archive, Finding, Head, Judged, Place, Record
from tests.models.nights.world import NO_HEAD

FIRST_DATE: Final = date(2026, 1, 1)
_START: Final = 1_767_000_000_000_000  # of every process; their numbers go on
_MINUTE: Final = 60_000_000  # microseconds


class ProductNights(Nights):
    """Nights whose links the product plans and makes."""

    def run(self, archive: Archive, order: Order) -> Record:
        prior = archive.last_night()
        previous = prior.link if prior else NO_NIGHT
        assert isinstance(previous, Night)
        world = self.world(archive, previous, order)
        at = _time(order.horizon + 120)
        link = plan_night(previous, world, at=at, spooled_days=order.spooled_days)
        unproven = frozenset(
            (writer, number)
            for writer in self.writers(archive, None)
            for number in self.missing_seals(archive, writer, archive.heads.get(writer), None)
        )
        unproven |= {(w, 0) for w in self.writers(archive, None) if w not in archive.heads}
        judged = {}
        for each in link.dates:
            number = _number_of(each.date)
            if each.date >= str(world.today) or each.settled:
                continue
            said = self.judge(archive, number, self.evidence(archive, number), order)
            absent = said.absent | unproven | self.open_chains(archive, number)
            judged[number] = said._replace(absent=absent)
            link = with_verdict(link, each.date, 0 if said.clean else 1, len(said.waiting))
        findings = self.findings(archive, order, link, judged)
        return self._add(archive, order, link.signed(None), judged, findings)

    def open_chains(self, archive: Archive, date: int) -> set[Place]:
        """Return the journals after the last seal of each writer that nothing proves on `date`."""
        last = {seal.place[0]: seal for _, seal in sorted(archive.seals.items())}
        return {
            (writer, seal.place[1] + 1)
            for writer, seal in last.items()
            if not seal.ended and seal.closed < (date + 1) * DAY
            if not self.is_retired(archive, writer, archive.heads.get(writer, NO_HEAD))
        }

    def world(self, archive: Archive, previous: Night, order: Order) -> World:
        """Return the archive as the product finds it."""
        journals = [
            NewJournal(
                seal.place[0],
                _START,
                seal.place[1],
                f"{seal.digest:064x}",
                tuple(sorted(_date(number) for number in seal.concerns)),
            )
            for seal in archive.seals.values()
            if not previous.has_judged(JournalName(seal.place[0], _START, seal.place[1]))
        ]
        folders = {day for _, day in archive.segments} | set(archive.merged)
        prior = archive.last_night()
        told = prior.forgotten if prior else frozenset()
        retired = {w for w, head in archive.heads.items() if self.is_retired(archive, w, head)}
        return World(
            today=FIRST_DATE + timedelta(days=order.horizon // DAY),
            heads=[_head(writer, head) for writer, head in sorted(archive.heads.items())],
            journals=journals,
            kept=frozenset(_date(number) for number in folders),
            results=frozenset(_date(number) for number in archive.results),
            retired=frozenset(retired),
            live=frozenset(),
            named=frozenset(archive.routes),
            numbers={
                (writer, _START): {number for w, number in archive.seals if w == writer}
                for writer, _ in archive.seals
            },
            before={
                writer: link
                for writer, number in sorted(archive.seals, reverse=True)
                if (link := _link((writer, number - 1), archive.seals[writer, number].after))
            },
            sealed=frozenset(_date(seal.closed // DAY) for seal in archive.seals.values()),
            forgotten=frozenset(
                _date(number)
                for number, said in archive.forgotten.items()
                if said.unresolved is None and number not in told
            ),
        )

    def findings(
        self, archive: Archive, order: Order, link: Night, judged: dict[int, Judged]
    ) -> set[Finding]:
        """Return what the night names: the errors of its link, and those of the judged dates."""
        findings = self.chain_of_nights(archive, order)
        findings |= {found for named in link.findings for found in _findings(named)}
        removed = set(judged) & set(archive.forgotten)  # only late rows are left of these
        findings |= {Finding("late-rows", f"date {n}") for n in removed if not judged[n].clean}
        if judged:
            for writer in self.writers(archive, None):
                findings |= self.writer(archive, writer, None, order)
        return findings

    def _add(
        self,
        archive: Archive,
        order: Order,
        link: Night,
        judged: dict[int, Judged],
        findings: set[Finding],
    ) -> Record:
        prior = archive.last_night()
        before = prior.dates if prior else {}
        said = before | judged
        dates = {n: each for n, each in said.items() if n not in archive.forgotten}
        judged = {n: each for n, each in judged.items() if n in dates}
        clean_before = self.clean_before(archive, prior)
        record = Record(
            number=link.n,
            horizon=order.horizon,
            heads=self.heads(archive, prior),
            dates=dates,
            judged=frozenset(judged),
            findings=frozenset(findings),
            taken_back=frozenset(n for n in judged if n in clean_before and not judged[n].clean),
            ended=frozenset(w for w, head in archive.heads.items() if head.open is None),
            forgotten=frozenset(archive.forgotten),
            link=link,
        )
        archive.results |= {n: (link.n, said.clean) for n, said in judged.items()}
        archive.nights.append(record)
        return record


def _head(writer: str, head: Head) -> HeadSeen:
    closed = _link((writer, head.closed), head.closed_at)
    following = None if head.open is None else _journal((writer, head.open))
    return HeadSeen(writer, closed, following, _time(head.closed_at))


def _findings(named: NightFinding) -> Iterator[Finding]:
    """Yield an error of the product as those of the model: about the date, and each journal."""
    folder, _, name = named.place.rpartition("/")
    stem = name.removesuffix(".json")
    journal = parse_journal_name(stem)
    if stem.startswith("date="):
        yield Finding(named.rule, f"date {_number_of(stem.removeprefix('date='))}")
        journal = parse_journal_name(named.text.partition(" ")[0])
    elif journal is None:
        yield Finding(named.rule, stem if folder == "_heads" else named.place)
    if journal is not None:
        first = 1 if ", up to " in named.text else journal.number
        span = re.search(r"\d to (\d+), have", named.text)
        for number in range(first, int(span[1]) + 1 if span else journal.number + 1):
            yield Finding(named.rule, journal.writer, number)


def _link(place: Place, closed: int) -> Previous | None:
    return Previous(_journal(place), f"{place[1]:064x}", _time(closed)) if place[1] else None


def _journal(place: Place) -> str:
    return f"{place[0]}-{_START}-{place[1]:06}"


def _date(number: int) -> str:
    return (FIRST_DATE + timedelta(days=number)).isoformat()


def _number_of(day: str) -> int:
    return (date.fromisoformat(day) - FIRST_DATE).days


def _time(minutes: int) -> int:
    return day_start(FIRST_DATE) + minutes * _MINUTE
