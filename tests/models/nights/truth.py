"""The truth of a world, against which each night is held."""

from __future__ import annotations

from collections import defaultdict

from tests.models.nights.store import DAY, Head, Judged, Place, Record, Row
from tests.models.nights.world import Copy, World


class Truth:
    """Remembers what the nights said, and compares each with the world.

    A night may be silent about four things, because no file can tell it: rows of a writer that
    the archive does not know; rows after a stop that is the last the archive heard of a writer
    (the night states the stop); an older copy of the whole archive, or of its links and results
    together, unless its order names the expected link; and rows of dates before the first that it
    found. It names once the journals with rows of dates that were removed.
    """

    def __init__(self, world: World, spooled_days: int) -> None:
        self._world = world
        self._spooled_days = spooled_days
        self._said: dict[int, Judged] = {}  # the last word on a date
        self._seen: set[Place] = set()  # evidence of any night
        self._to_tell: set[int] = set()  # dates that were forgotten unresolved
        self._gone_dates: set[int] = set()
        self._concerned: dict[int, set[Place]] = {}  # before the last forgetting
        self.link_removed = self.results_deleted = False  # since the last night
        self.gone: set[Place] = set()  # journals that a rolled back archive had
        self._told_late: set[Place] = set()
        self._first_date = 0  # of the archive that the first night found
        self.expects: Record | None = None  # a link that the archive no longer has

    def contradictions(self, record: Record) -> list[str]:
        """Return what is wrong with a night, in words."""
        if record.breaks_chain():
            self.forget_words()  # the night says that its chain is broken
        elif self.link_removed and self.results_deleted:
            self.forget_words()
            self._seen = _evidence(self._world.archive.nights)
        self.link_removed = self.results_deleted = False
        self._told_late |= {
            (each.subject, each.number)
            for each in record.findings
            if each.rule == "late-for-forgotten" and each.number is not None
        }
        if record.number == 1:
            archive = self._world.archive
            self._first_date = min([date for _, date in archive.segments] + [*archive.merged, 99])
        found = [*self._expected(record), *self._taken_back(record), *self._forgotten(record)]
        found += self._rows(record) + self._copies(record)
        self._seen |= _evidence([record])
        return found

    def forget_words(self) -> None:
        """Forget what was said: the links and results that said it are gone with their archive."""
        self._said.clear()
        self._to_tell.clear()

    def before_forgetting(self) -> None:
        """Note the journals that concern each date."""
        self._concerned = defaultdict(set)
        for seal in self._world.archive.seals.values():
            for date in seal.concerns:
                self._concerned[date].add(seal.place)

    def after_forgetting(self) -> None:
        """Note what the next night has to tell of the dates that were just removed."""
        link = self._world.archive.last_night()
        for date in set(self._world.archive.forgotten) - self._gone_dates:
            self._gone_dates.add(date)
            said = link.dates.get(date) if link else None
            judged = {place for place, _ in said.evidence} if said else set()
            waiting = said and said.waiting  # a night called the others missing
            if waiting or self._concerned.get(date, set()) - judged:
                self._to_tell.add(date)

    def _expected(self, record: Record) -> list[str]:
        if self.expects is None or record.breaks_chain():
            return []
        return ["the expected link is gone, and the night does not say so"]

    def _taken_back(self, record: Record) -> list[str]:
        found = []
        for date, judged in record.dates.items():
            before = self._said.get(date)
            if before and before.clean and not judged.clean and date not in record.taken_back:
                found.append(f"date {date} was clean and is not, and the night does not say so")
            if before and not before.clean and judged.clean:
                gone = {place for place, _ in before.evidence - judged.evidence}
                if gone - self._forgotten_seals():
                    found.append(f"date {date} became clean without its evidence")
        kept = set(record.dates) | set(self._world.archive.forgotten)
        found += [f"date {date} is in no night any more" for date in set(self._said) - kept]
        self._said = dict(record.dates)
        return found

    def _forgotten_seals(self) -> set[Place]:
        return {p for f in self._world.archive.forgotten.values() for p in f.seals}

    def _forgotten(self, record: Record) -> list[str]:
        told = {finding.subject for finding in record.findings}
        untold = sorted(date for date in self._to_tell if f"date {date}" not in told)
        self._to_tell.clear()
        return [f"date {date} was forgotten unresolved, and no night says so" for date in untold]

    def _rows(self, record: Record) -> list[str]:
        """Each acknowledged row until the horizon was judged, or its journal is named."""
        found = set()
        for place, row in self._world.log:
            if row.time >= record.horizon or row.date in self._world.archive.forgotten:
                continue
            if row.date < self._first_date or place in self._told_late:
                continue
            judged = record.dates.get(row.date)
            seen = judged and place in {known for known, _ in judged.evidence} | judged.absent
            if not seen and not self._excused(place, record):
                found.add(f"{place} has rows of date {row.date}, and the night does not name it")
        return sorted(found)

    def _excused(self, place: Place, record: Record) -> bool:
        writer, number = place
        archive = self._world.archive
        head = archive.heads.get(writer)
        retired = archive.retired.get(writer)
        return (
            record.names(writer, number)
            or record.breaks_chain()
            or writer not in archive.routes
            or (retired is not None and retired == head and number > retired.closed)
            or (writer in record.ended and self._after_stop(place, head))
            or place in self.gone
        )

    def _after_stop(self, place: Place, head: Head | None) -> bool:
        """Return whether no night saw the journal, and the archive last heard of a stop."""
        stop = head and (place[0], head.closed)
        after = head is not None and place[1] > head.closed
        return after and stop in self._world.stops and place not in self._seen

    def _copies(self, record: Record) -> list[str]:
        """Each bad copy whose rows are all in the evidence is counted, and no good one is."""
        rows: dict[int, list[tuple[Place, Row]]] = defaultdict(list)
        for place, row in self._world.log:
            rows[row.copy].append((place, row))
        found = []
        for number, sightings in rows.items():
            date = sightings[0][1].date
            judged = record.dates.get(date)
            places = {place for place, _ in sightings}
            if judged and places <= {place for place, _ in judged.evidence} - judged.absent:
                wrong = self._wrong(self._world.copies[number], sightings, judged, record.horizon)
                found += [f"copy {number} of date {date} {wrong}"] if wrong else []
        return found

    def _wrong(
        self, copy: Copy, sightings: list[tuple[Place, Row]], judged: Judged, horizon: int
    ) -> str:
        """Return what a night that has seen all rows of a copy says wrongly of it."""
        old = horizon - copy.received > self._spooled_days * DAY
        number = copy.number
        if copy.unexpected:
            return "" if number in judged.unexpected else "is unexpected"
        if copy.unmarked > 1:
            return "" if number in judged.duplicated else "is doubled"
        if not copy.lost:
            bad = judged.duplicated | judged.unexpected | (set() if old else judged.missing)
            return "is well, and called bad" if number in bad else ""
        if all(row.leg != "spooled" for _, row in sightings):
            old |= self._closed_later(sightings[0][0])
        stated = number in judged.missing or (number in judged.waiting and not old)
        return "" if stated else "is lost"

    def _closed_later(self, place: Place) -> bool:
        """Return whether the outcome is in no open journal: a later one is closed."""
        return any(w == place[0] and n > place[1] for w, n in self._world.archive.seals)


def _evidence(nights: list[Record]) -> set[Place]:
    """Return the journals that some nights have seen."""
    dates = [judged for night in nights for judged in night.dates.values()]
    return {place for judged in dates for place, _ in judged.evidence}
