"""The link of a night, only by values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta

import pytest

from gateway.archive.judged_journals import Seen, Span, as_one, newest_chain
from gateway.archive.layout import JournalName, day_start, parse_journal_name
from gateway.archive.signed_json import Previous, Term
from gateway.night.archive.night_record import NO_NIGHT, HeadSeen, Night
from gateway.night.archive.removed import Removed
from gateway.night.reconcile.by_key import by_key
from gateway.night.reconcile.nights.archive_state import ArchiveState, NewJournal
from gateway.night.reconcile.nights.plan import plan_night, with_verdict
from gateway.night.reconcile.report.report import NO_ANSWER

FIRST = date(2026, 3, 10)
HOUR = 3_600_000_000
CLEAN = (0, 0)  # the exit status, and the copies in flight


def day(number: int) -> str:
    """Day 1 is `FIRST`."""
    return (FIRST + timedelta(days=number - 1)).isoformat()


def head(writer: str, number: int, at: int, *, stopped: bool = False) -> HeadSeen:
    closed = Previous(str(JournalName(writer, 1, number)), "d", at)
    return HeadSeen(
        writer, closed, None if stopped else str(JournalName(writer, 1, number + 1)), at
    )


def journal(number: int, *concerns: int, writer: str = "a") -> NewJournal:
    return NewJournal(writer, 1, number, f"mac-{writer}-{number}", tuple(map(day, concerns)))


def noon(number: int) -> int:
    return day_start(FIRST + timedelta(days=number - 1)) + 12 * HOUR


def state(today: int, *journals: NewJournal, heads: tuple[HeadSeen, ...] = ()) -> ArchiveState:
    """The archive at one o'clock of day `today`; every date before has rows and results.

    The journals that heads name as closed have seals.
    """
    dates = frozenset(map(day, range(1, today)))
    now = FIRST + timedelta(days=today - 1)
    closed = [parse_journal_name(each.closed.journal) for each in heads if each.closed]
    sealed = [
        journal(number, writer=name.writer)
        for name in closed
        if name
        for number in range(1, name.number + 1)
    ]
    found = [*sealed, *journals]
    rows = dates | {day(today)}
    return ArchiveState(
        now, heads, found, rows, dates - {day(today - 1)}, numbers=numbers_of(found)
    )


def numbers_of(journals: Iterable[NewJournal]) -> dict[tuple[str, int], list[int]]:
    return by_key(((each.writer, each.start), each.number) for each in journals)


def also(seen: ArchiveState, *earlier: NewJournal) -> ArchiveState:
    """The archive with the seals of journals that earlier nights judged."""
    return replace(seen, numbers=numbers_of([*earlier, *seen.journals]))


def link(
    previous: Night, seen: ArchiveState, verdict: tuple[int, int] = CLEAN
) -> tuple[tuple[str, ...], Night]:
    """The dates that the night after `previous` judges, and its link with their verdicts."""
    at = day_start(seen.today) + HOUR
    planned = night = plan_night(previous, seen, at=at, spooled_days=7)
    for judged in to_judge(planned, seen):
        night = with_verdict(night, judged, *verdict)
    return to_judge(planned, seen), night.signed(None)


def to_judge(planned: Night, seen: ArchiveState) -> tuple[str, ...]:
    closed = (each for each in planned.dates if each.date < str(seen.today))
    return tuple(each.date for each in closed if not each.settled)


def rules(night: Night) -> list[str]:
    return [each.rule for each in night.findings]


def test_the_first_night_judges_every_closed_date() -> None:
    dates, _ = link(NO_NIGHT, state(4, journal(1, 1), journal(2, 2), journal(3, 3), journal(4, 4)))

    assert dates == (day(1), day(2), day(3))


def test_an_ordinary_night_judges_one_date() -> None:
    _, night = link(NO_NIGHT, state(3, journal(1, 1), journal(2, 2)))

    dates, _ = link(night, state(4, journal(3, 3)))

    assert dates == (day(3),)


def test_a_night_judges_a_settled_date_again_that_a_later_row_concerns() -> None:
    _, night = link(NO_NIGHT, state(3, journal(1, 1), journal(2, 2)))
    _, night = link(night, state(4, journal(3, 3)))
    assert [each.date for each in night.dates] == [day(3)]

    dates, _ = link(night, state(5, journal(4, 1, 4)))

    assert dates == (day(1), day(4))


def test_a_journal_of_today_is_evidence_of_the_next_night() -> None:
    _, night = link(NO_NIGHT, state(3, journal(1, 1, 2), journal(2, 3)))

    _, night = link(night, state(4))

    assert [(each.date, each.journals) for each in night.dates] == [(day(3), 1)]


def test_an_outage_of_five_days_is_judged_at_once() -> None:
    _, night = link(NO_NIGHT, state(3))

    dates, _ = link(night, state(8))

    assert dates == tuple(map(day, range(3, 8)))


def test_a_date_with_copies_in_flight_is_judged_every_night() -> None:
    _, night = link(NO_NIGHT, state(3), (0, 5))

    dates, night = link(night, state(4))
    assert dates == (day(1), day(2), day(3))

    dates, _ = link(night, state(5))
    assert dates == (day(4),)


def test_a_date_without_results_is_judged_again() -> None:
    _, night = link(NO_NIGHT, state(4))
    later = state(5)

    dates, _ = link(night, replace(later, results=later.results - {day(2)}))

    assert dates == (day(2), day(4))


def test_an_interrupted_night_resumes_at_the_dates_that_it_did_not_judge() -> None:
    seen = state(5, journal(1, 1))
    half = with_verdict(plan_night(NO_NIGHT, seen, at=1, spooled_days=7), day(1), *CLEAN)

    dates, _ = link(half, state(5))

    assert dates == (day(2), day(3), day(4))


@pytest.mark.parametrize(
    ("half", "today", "kept"),
    [
        pytest.param(False, 5, (1, 2, 3, 4), id="the-same-day"),
        pytest.param(False, 6, (), id="the-next-day"),
        pytest.param(True, 6, (1,), id="the-next-day-after-an-interrupted-run"),
    ],
)
def test_the_verdicts_of_a_run_are_kept_while_nobody_may_have_got_them(
    half: bool, today: int, kept: tuple[int, ...]
) -> None:
    seen = state(5, journal(1, 1))
    _, first = link(NO_NIGHT, seen)
    if half:
        first = with_verdict(plan_night(NO_NIGHT, seen, at=1, spooled_days=7), day(1), *CLEAN)

    later = state(today)
    night = plan_night(first, replace(later, results=later.kept), at=2, spooled_days=7)

    assert tuple(each.date for each in night.dates if each.settled) == tuple(map(day, kept))


def test_a_late_upload_of_an_older_journal_is_new() -> None:
    _, night = link(NO_NIGHT, state(3, journal(1, 1), journal(4, 2)))
    assert night.seen[0].missing == (Span(2, 3),)
    assert not night.has_judged(JournalName("a", 1, 3))
    assert night.has_judged(JournalName("a", 1, 4))

    dates, night = link(night, state(4, journal(3, 1)))

    assert dates == (day(1), day(3))
    assert night.seen[0].missing == (Span(2, 2),)


def test_a_late_upload_of_the_first_journal_is_new() -> None:
    """Its disk was away when another machine went on: its rows are of a date that was judged."""
    _, night = link(NO_NIGHT, state(5, journal(3, 2), journal(4, 3)))
    assert not night.has_judged(JournalName("a", 1, 1))
    assert night.seen[0].missing == ()

    dates, night = link(night, state(6, journal(1, 1)))

    assert dates == (day(1), day(5))
    assert night.has_judged(JournalName("a", 1, 1))
    assert night.seen[0].missing == (Span(2, 2),)


def test_a_silent_writer_is_named_until_it_moves() -> None:
    night = NO_NIGHT
    for today in range(2, 7):
        heads = (head("a", 1, noon(1)), head("b", today, day_start(FIRST) + today * 24 * HOUR))
        _, night = link(night, state(today, heads=heads))
        assert rules(night) == ["silent-writer"]

    moved = (head("a", 9, noon(7)), head("b", 7, noon(7)))
    dates, night = link(night, state(7, journal(2, 1), heads=moved))
    assert rules(night) == []
    assert day(1) in dates


@pytest.mark.parametrize("kind", ["retired", "live", "stopped"])
def test_a_writer_that_ended_or_runs_is_not_silent(kind: str) -> None:
    seen = state(4, heads=(head("a", 1, noon(1), stopped=kind == "stopped"),))
    seen = replace(seen, retired=frozenset({"a"} if kind == "retired" else ()))
    seen = replace(seen, live=frozenset({"a"} if kind == "live" else ()))

    assert rules(link(NO_NIGHT, seen)[1]) == []


def test_the_dates_since_the_last_sign_of_a_writer_are_judged_once_after_it_is_retired() -> None:
    """They were not clean for its silence, and are clean without it."""
    heads = (head("a", 1, noon(3)), head("b", 1, noon(1)))
    _, night = link(NO_NIGHT, state(5, heads=heads), (1, 0))
    retired = frozenset({"a"})

    dates, night = link(night, replace(state(6, heads=heads), retired=retired))
    assert dates == (day(3), day(4), day(5))

    dates, _ = link(night, replace(state(7, heads=heads), retired=retired))
    assert dates == (day(6),)


def test_a_writer_that_is_retired_was_seen_until_shortly_before_its_last_sign() -> None:
    """Its open journal may have messages that came before midnight: they are not proven."""
    heads = (head("a", 1, noon(4) - 12 * HOUR + 1), head("b", 1, noon(1)))
    _, night = link(NO_NIGHT, state(5, heads=heads), (1, 0))

    dates, _ = link(night, replace(state(6, heads=heads), retired=frozenset({"a"})))

    assert dates == (day(3), day(4), day(5))


def test_a_head_that_vanished_or_went_back_is_named_every_night() -> None:
    _, night = link(NO_NIGHT, state(3, heads=(head("a", 5, noon(3)), head("b", 5, noon(3)))))

    for today in (4, 5, 6):
        seen = state(today, heads=(head("a", 4, noon(today)),))
        _, night = link(
            night, replace(seen, numbers={("a", 1): range(1, 6), ("b", 1): range(1, 6)})
        )
        assert rules(night) == ["old-head", "missing-head"]


def test_a_date_that_was_removed_with_copies_in_flight_is_named() -> None:
    _, night = link(NO_NIGHT, state(3), (0, 1))
    later, taken = state(4), Removed(day(2))

    dates, night = link(night, replace(later, kept=later.kept - {day(1)}, removed=taken))

    assert rules(night) == ["forgotten-unresolved"]
    assert day(1) not in dates


def test_a_date_with_copies_in_flight_that_is_lost_is_judged_again_when_it_is_back() -> None:
    """No removal took it: each night names it until then."""
    _, night = link(NO_NIGHT, state(4), (0, 1))
    for today in (5, 6):
        seen = state(today)
        gone = replace(seen, kept=seen.kept - {day(1)})
        dates, night = link(night, gone, (NO_ANSWER, 0))
        assert rules(night) == ["forgotten-unresolved"]
        assert day(1) in dates

    dates, night = link(night, state(7))

    assert day(1) in dates
    assert rules(night) == []


def test_a_record_is_read_as_it_was_written() -> None:
    _, night = link(
        NO_NIGHT, state(3, journal(1, 1), journal(3, 2), heads=(head("a", 3, noon(3)),))
    )

    assert Night.from_json(night.to_json()) == night
    assert night.fault(None) == ""
    assert replace(night, at=5).fault(None)
    assert night.signed(b"key").fault(b"key") == ""
    assert night.fault(b"key")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"version": 1, "n": 1}'])
def test_a_damaged_record_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"is no JSON|has version|lacks or adds"):
        Night.from_json(content)


def test_a_closed_journal_that_only_a_head_names_is_named_by_a_night_without_dates() -> None:
    _, night = link(NO_NIGHT, state(3, journal(1, 1), journal(2, 2)))
    again = state(3)
    heads = (head("a", 4, noon(2), stopped=True),)
    later = replace(again, heads=heads, results=again.kept, numbers={("a", 1): {1, 2, 3}})

    dates, night = link(night, later)

    assert dates == ()
    assert rules(night) == ["missing-seal"]


def test_a_date_whose_rows_are_lost_and_whose_seals_are_there_is_judged() -> None:
    _, night = link(NO_NIGHT, state(3, journal(1, 1), journal(2, 2)), (2, 0))
    bare = state(4)
    lost = replace(bare, kept=bare.kept - {day(2)}, sealed=frozenset({day(2)}))

    dates, night = link(night, lost)

    assert day(2) in dates
    assert "forgotten-unresolved" not in rules(night)


def test_seals_that_vanish_after_they_were_judged_are_named_by_every_night() -> None:
    judged = state(3, *(journal(number, 1) for number in range(1, 7)))
    _, night = link(NO_NIGHT, judged)
    taken = Removed(day(2), {"a": JournalName("a", 1, 2)})
    left = replace(state(4), numbers={("a", 1): {3, 4, 6}}, removed=taken)

    _, night = link(night, left)
    _, again = link(night, replace(left, today=state(5).today))

    (gone,) = (each for each in night.findings if each.rule == "missing-journal")
    assert gone.text == "journals of a, 000005, have no seal: rows are missing"
    assert gone in again.findings


def test_seals_that_vanish_with_all_before_them_are_named_by_every_night() -> None:
    """No removal took the predecessor of the first seal that is left."""
    heads = (head("a", 6, noon(2), stopped=True),)
    _, night = link(
        NO_NIGHT, state(3, *(journal(number, 1) for number in range(1, 7)), heads=heads)
    )
    before = Previous(str(JournalName("a", 1, 4)), "d", noon(1))
    left = replace(state(4, heads=heads), numbers={("a", 1): {5, 6}})

    for seen in (replace(left, before={"a": before}), replace(left, numbers={})):
        named = {each.rule: each.text for each in link(night, seen)[1].findings}
        which = f"journals of a, 000001 to 00000{4 if seen.before else 6}"
        assert named["missing-journal"] == f"{which}, have no seal: rows are missing"


def test_seals_that_were_removed_with_their_date_are_not_named() -> None:
    _, night = link(NO_NIGHT, state(3, *(journal(number, 1) for number in range(1, 7))))
    before = Previous(str(JournalName("a", 1, 4)), "d", noon(1))
    later = state(4)
    taken = Removed(day(2), {"a": JournalName("a", 1, 4)})
    left = replace(later, kept=later.kept - {day(1)}, before={"a": before}, removed=taken)

    assert "missing-journal" not in rules(link(night, replace(left, numbers={("a", 1): {5, 6}}))[1])


@pytest.mark.parametrize(("taken", "missing"), [(5, []), (4, ["missing-journal"])])
def test_journals_that_a_removal_took_before_any_night_are_not_missing(
    taken: int, missing: list[str]
) -> None:
    _, night = link(NO_NIGHT, state(3, *(journal(number, 1) for number in range(1, 4))))
    removed = Removed(day(4), {"a": JournalName("a", 1, taken)})
    later = replace(state(6, journal(6, 4)), removed=removed)

    found = rules(link(night, later)[1])

    assert [each for each in found if each == "missing-journal"] == missing


def test_the_journals_between_the_last_seal_and_the_head_are_named() -> None:
    _, night = link(NO_NIGHT, state(3, journal(1, 1), journal(2, 2)))
    heads = (head("a", 4, noon(3), stopped=True),)
    later = replace(state(4), heads=heads, numbers={("a", 1): {1, 2}}, retired=frozenset({"a"}))

    closed, before = link(night, later)[1].findings

    assert closed.rule == "missing-seal"
    assert before.text == "journals of a, 000003, have no seal: rows are missing"


def instance(writer: str, lease: int, number: int, *, back: bool = False) -> HeadSeen:
    """The head of an instance that was killed at noon of day 1; its last journal may be `back`."""
    seen = head(writer, number, noon(1))
    opened = seen.closed.journal if back and seen.closed else seen.open
    since = noon(1) + lease * HOUR
    return replace(seen, open=opened, gateway="plant", lease=Term(lease, since, 10))


@pytest.mark.parametrize("back", [False, True])
def test_an_instance_whose_disk_is_away_is_named_with_the_time_that_it_holds(*, back: bool) -> None:
    away = instance("plant@b", 1, 3, back=back)
    active = instance("plant@a", 2, 9)
    _, night = link(NO_NIGHT, replace(state(3, heads=(active, away)), live=frozenset({"plant@a"})))

    text = f"plant@b holds {day(1)} 12:00:00 to 14:00:00 UTC; its disk is away: start it with its"
    assert [each.text.startswith(text) for each in night.findings] == ([] if back else [True])


def test_an_instance_that_nobody_followed_is_silent() -> None:
    _, night = link(NO_NIGHT, state(3, heads=(instance("plant@b", 2, 3, back=True),)))

    (found,) = night.findings
    assert (found.rule, "wrote nothing" in found.text) == ("silent-writer", True)


def test_a_new_chain_is_judged_apart_from_the_one_before() -> None:
    """A writer that lost its disk counts from one again; its earlier seals are still there."""
    earlier = [journal(number, 1) for number in range(1, 5)]
    anew = [replace(journal(number, 3), start=2) for number in range(1, 4)]

    _, first = link(NO_NIGHT, state(3, *earlier))
    _, second = link(first, also(state(4, anew[0]), *earlier))
    _, third = link(second, also(state(5, journal(5, 1), anew[1]), *earlier, anew[0]))

    def known(night: Night) -> list[int]:
        names = [JournalName(each.writer, each.start, each.number) for each in earlier + anew]
        return [name.start * 10 + name.number for name in names if night.has_judged(name)]

    assert known(second) == [11, 12, 13, 14, 21]
    assert known(third) == [11, 12, 13, 14, 21, 22]
    assert third.has_judged(JournalName("a", 1, 5))
    assert link(NO_NIGHT, state(4, *earlier, anew[0]))[1].seen == second.seen


def test_a_machine_that_comes_back_has_journals_of_its_own() -> None:
    """The machine after it gave their numbers again: it had read an older head, or none."""
    anew = [replace(journal(number, 3), start=5) for number in (3, 4)]
    _, night = link(NO_NIGHT, state(4, journal(1, 1), journal(2, 1), *anew))
    assert not night.has_judged(JournalName("a", 1, 3))

    dates, night = link(night, also(state(5, journal(3, 2)), *anew))

    assert dates == (day(2), day(4))
    assert [(each.start, each.number) for each in night.seen] == [(1, 3), (5, 4)]


def test_a_seal_of_an_earlier_machine_that_vanishes_is_named_by_every_night() -> None:
    """Its successor began a chain of its own."""
    earlier = [journal(number, 1) for number in range(1, 4)]
    anew = [replace(journal(number, 3), start=5) for number in (0, 1, 2)]
    _, night = link(NO_NIGHT, state(4, *earlier, *anew, heads=(head("a", 0, noon(3)),)))

    for today in (5, 6):
        _, night = link(night, also(state(today), earlier[0], earlier[2], *anew))
        assert [each.place for each in night.findings if each.rule == "missing-journal"] == [
            "_seals/a-1-000002.json"
        ]


def test_processes_leave_the_record_with_their_dates() -> None:
    """A record does not grow with the restarts of years."""
    begins = [noon(number) for number in (1, 2, 3)]
    made = [
        replace(journal(number, 3), start=start) for number, start in enumerate(begins, start=1)
    ]
    _, night = link(NO_NIGHT, state(5, *made))
    assert [each.start for each in night.seen] == begins

    kept, taken = (
        frozenset({day(3), day(4), day(5)}),
        Removed(day(3), {"a": JournalName("a", begins[0], 1)}),
    )
    _, night = link(night, replace(state(6), kept=kept, removed=taken))

    assert [each.start for each in night.seen] == begins[1:]


def test_a_clock_that_was_set_back_begins_no_chain() -> None:
    first = [journal(number, 1) for number in range(1, 6)]
    later = [replace(journal(6, 2), start=9), replace(journal(7, 2), start=5)]
    last = replace(journal(8, 3), start=9)
    _, steps = link(link(NO_NIGHT, state(2, *first))[1], also(state(3, *later), *first))

    _, whole = link(NO_NIGHT, state(4, *first, *later, last))
    _, steps = link(steps, also(state(4, last), *first, *later))

    assert whole.seen == steps.seen
    assert as_one(newest_chain(whole.seen)) == Seen("a", 9, 8, first=1)
