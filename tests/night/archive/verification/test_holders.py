"""Two instances of one gateway in one archive: their chains, leases, overlaps, and absent disks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from gateway.archive.heads import WriterHead, write_head
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import HOUR, JournalName, journal_folder, writer_name
from gateway.archive.location import parse_location
from gateway.archive.name_store import NameStore
from gateway.archive.signed_json import NO_TERM, TAKEN, Previous, Term
from gateway.archive.storage import LocalStorage, RemoteStorage, Storage
from gateway.night.archive.retired import retire
from gateway.night.archive.seals.seal import End
from gateway.night.archive.verification.holders import Holder
from gateway.night.archive.verification.verify import verify_day
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY, NOON, QUICK, delivered, put, received
from tests.night.archive.verification.chained import MIDNIGHT, SECOND, Chained, errors, file_of

AFTER = [DAY + timedelta(days=number) for number in range(1, 4)]
END = MIDNIGHT + 30 * HOUR
FIRST = Term(3, MIDNIGHT - HOUR, 10)
SECOND_LEASE = Term(4, NOON + 2 * SECOND, 10)


def taken_over(storage: Storage, end: End, *, rows: int = 1, later: Term = SECOND_LEASE) -> Chained:
    """Instance b holds lease 3 until noon; two seconds later a takes lease 4 until `END`."""
    made = Chained(storage)
    start = FIRST.since
    made.add("plant", MIDNIGHT - HOUR, NOON - HOUR, instance="b", lease=FIRST, start=start)
    made.add("plant", NOON - HOUR, NOON, instance="b", lease=FIRST, start=start, end=end, rows=rows)
    start = later.since
    made.add("plant", start, start + HOUR, instance="a", lease=later, start=start, rows=5)
    made.add("plant", start + HOUR, END, instance="a", lease=later, start=start, end=End.STOPPED)
    return made


def texts(made: Chained, rule: str) -> list[str]:
    return [each.text for each in made.verify().findings if each.rule == rule]


@pytest.mark.parametrize("end", [End.STOPPED, End.KILLED])
def test_an_instance_that_takes_over_leaves_nothing_open(tmp_path: Path, end: End) -> None:
    """The last journal of the other instance is here: it stopped, or its process was killed."""
    made = taken_over(LocalStorage(tmp_path), end)

    assert errors(made.verify()) == []
    assert errors(made.verify(AFTER[0])) == []


def test_both_instances_are_one_gateway_that_paused_between_them(tmp_path: Path) -> None:
    made = taken_over(LocalStorage(tmp_path), End.STOPPED)

    pauses = made.verify().pauses

    assert [(each.gateway, each.begin, each.end) for each in pauses] == [
        ("plant", NOON, NOON + 2 * SECOND)
    ]


def test_a_stopped_instance_is_no_pause_while_another_one_runs(tmp_path: Path) -> None:
    made = Chained(LocalStorage(tmp_path))
    made.add("plant", MIDNIGHT - HOUR, NOON, instance="b", end=End.STOPPED)
    made.add("plant", NOON - HOUR, END, instance="a", start=NOON - HOUR, end=End.STOPPED)

    assert made.verify().pauses == ()


@pytest.mark.parametrize("read", [False, True])
def test_an_instance_whose_journal_is_not_read_may_have_run(tmp_path: Path, *, read: bool) -> None:
    """Instance b went on after its last seal, until a took the lease at noon."""
    made = taken_over(LocalStorage(tmp_path), End.CLOSED)
    if read:
        end = NOON + SECOND
        made.add("plant", NOON, end, instance="b", lease=FIRST, end=End.KILLED)

    pauses = [(each.begin, each.end) for each in made.verify().pauses]

    assert pauses == ([(NOON + SECOND, NOON + 2 * SECOND)] if read else [])


@pytest.mark.parametrize("where", ["head", "stopped", "open", "lost"])
def test_nothing_is_said_to_have_been_still_while_a_journal_is_not_read(
    tmp_path: Path, where: str
) -> None:
    """One gateway stops at noon, starts at one, and its journal has no seal yet, or never."""
    made, start = Chained(LocalStorage(tmp_path)), NOON + HOUR
    made.add("plant", MIDNIGHT - HOUR, NOON, end=End.STOPPED)
    assert [(each.begin, each.end) for each in made.verify().pauses] == [
        (NOON, MIDNIGHT + 24 * HOUR)
    ]
    again: list[tuple[int, int]] = []
    if where == "head":
        stem = str(JournalName("plant", start, 1))
        head = WriterHead("plant", "plant", start, closed=made.links["plant"], open=stem)
        write_head(tmp_path, head)
    elif where == "open":
        writer = ArchiveWriter(tmp_path, "plant", start, QUICK, clock=lambda: start)
        found = made.verify(journals=tmp_path).pauses
        writer.close()
        assert [(each.begin, each.end) for each in found] == [(NOON, start)]
        return
    elif where == "stopped":
        made.add("plant", start, END, start=start, end=End.STOPPED)
        file_of(tmp_path, made.seals[-1]).unlink()
    else:
        made.add("plant", start, start + HOUR, start=start, end=End.STOPPED)
        file_of(tmp_path, made.seals[-1]).unlink()
        begin = start + 3 * HOUR
        made.add("plant", begin, END, start=begin, end=End.STOPPED)
        again = [(start + HOUR, begin)]

    pauses = [(each.begin, each.end) for each in made.verify().pauses]

    assert pauses == [(NOON, start), *again]


def test_the_summary_says_who_was_active_when(tmp_path: Path) -> None:
    made = taken_over(LocalStorage(tmp_path), End.STOPPED)

    assert made.verify().holders == (
        Holder("plant", "plant@b", 3, MIDNIGHT, NOON),
        Holder("plant", "plant@a", 4, NOON + 2 * SECOND, MIDNIGHT + 24 * HOUR),
    )
    alone = Chained(LocalStorage(tmp_path / "alone")).day(("east", "west"))
    assert alone.verify().holders == ()


def test_an_instance_is_active_without_a_message_and_until_the_next_lease(tmp_path: Path) -> None:
    """A frozen instance wakes up when another one has the lease, and closes its journal then."""
    made = Chained(LocalStorage(tmp_path))
    made.add("plant", NOON - HOUR, NOON + HOUR, instance="b", lease=FIRST, rows=0, end=End.STOPPED)
    since = SECOND_LEASE.since
    made.add("plant", since, END, instance="a", lease=SECOND_LEASE, rows=0, end=End.STOPPED)

    assert made.verify().holders == (
        Holder("plant", "plant@b", 3, NOON - HOUR, since),
        Holder("plant", "plant@a", 4, since, MIDNIGHT + 24 * HOUR),
    )


@pytest.mark.parametrize("remote", [False, True])
def test_an_instance_whose_disk_is_away_is_named_with_the_time_that_it_holds(
    tmp_path: Path, bucket: Bucket, *, remote: bool
) -> None:
    if remote:
        bucket.start()
    made = taken_over(RemoteStorage(bucket.url) if remote else LocalStorage(tmp_path), End.CLOSED)

    (text,) = texts(made, "open-chain")

    assert text.startswith("plant@b holds 2026-03-14 12:00:00 to 12:00:02 UTC; its disk is away")
    assert errors(made.verify(AFTER[1])) == []  # another instance had the lease then
    retire(made.storage, "plant@b", "its host is gone", NOON, None)
    (text,) = texts(made, "open-chain")
    assert text.endswith("after 2026-03-14 12:00:00 UTC (retired: its host is gone)")
    assert errors(made.verify(AFTER[1])) == []


@pytest.mark.parametrize("where", ["open", "next", "sealed"])
def test_a_lost_journal_is_an_error_until_another_instance_took_the_lease(
    tmp_path: Path, where: str
) -> None:
    """Instance b is killed at noon, and its journal is removed. It comes back after days.

    The head names the journal as open, then as the one before the open one, whose seal does so.
    """
    made = taken_over(LocalStorage(tmp_path), End.CLOSED)
    folder = journal_folder(tmp_path)
    folder.mkdir()
    lost = str(JournalName("plant@b", FIRST.since, 2))
    begin = MIDNIGHT + 100 * HOUR
    back, last = Term(5, begin, 10), Previous(lost, None, NOON)
    head = WriterHead(
        "plant@b", "plant", NOON, made.links["plant@b"], lost, instance="b", lease=FIRST
    )
    write_head(tmp_path, head)
    stem = str(JournalName("plant@b", begin, 3))
    if where != "open":
        head = replace(head, at=begin, closed=last, open=stem, lease=back)
        write_head(tmp_path, head)
    if where == "next":
        (folder / f"{stem}.open").write_bytes(b"a journal that waits")
    if where == "sealed":
        made.add(
            "plant", begin, begin + HOUR, end=End.STOPPED, start=begin, instance="b", lease=back,
            previous=last,
        )  # fmt: skip

    found = [errors(made.verify(day, tmp_path)) for day in (DAY, *AFTER[:2])]

    assert {"missing-journal", "missing-seal"} & {*found[0]}
    assert found[1:] == [[], []]


def test_a_lost_journal_is_over_with_the_lease_of_an_instance_that_was_retired(
    tmp_path: Path,
) -> None:
    """Instance b lost a journal; a took the lease, and was sold. Then b comes back, after days."""
    made = taken_over(LocalStorage(tmp_path), End.CLOSED)
    retire(made.storage, "plant@a", "it was sold", END, None)
    for path in [*tmp_path.rglob("plant@a-*.json"), *tmp_path.rglob("plant@a-*.parquet")]:
        path.unlink()
    begin = MIDNIGHT + 100 * HOUR
    lost = Previous(str(JournalName("plant@b", FIRST.since, 2)), None, NOON)
    made.add(
        "plant", begin, begin + HOUR, end=End.STOPPED, start=begin, instance="b",
        lease=Term(5, begin, 10), previous=lost,
    )  # fmt: skip

    dates = [
        day
        for day in (DAY, *AFTER[:2])
        if any("plant@b" in each.place for each in made.verify(day).findings)
    ]
    assert dates == [DAY]


def test_an_instance_that_a_retired_one_followed_is_not_silent(tmp_path: Path) -> None:
    """Instance b was killed, and a took the lease. Then a lost its journals, and was retired."""
    made = taken_over(LocalStorage(tmp_path), End.KILLED)
    retire(made.storage, "plant@a", "it was sold", END, None)
    for path in [*tmp_path.rglob("plant@a-*.json"), *tmp_path.rglob("plant@a-*.parquet")]:
        path.unlink()

    for day in AFTER[:2]:
        assert not any("plant@b" in each.text for each in made.verify(day).findings)


def test_an_instance_that_starts_again_leaves_its_killed_journal_as_it_was(
    tmp_path: Path,
) -> None:
    """The head names the next journal, of another process; the dates before it are proven."""
    made = taken_over(LocalStorage(tmp_path), End.KILLED)
    begin = MIDNIGHT + 100 * HOUR
    stem = str(JournalName("plant@b", begin, 2))
    write_head(
        tmp_path,
        WriterHead(
            "plant@b", "plant", begin, made.links["plant@b"], stem, instance="b",
            lease=Term(5, begin, 10),
        ),
    )  # fmt: skip

    assert errors(made.verify()) == []


def test_a_journal_that_comes_back_ends_the_finding(tmp_path: Path) -> None:
    made = taken_over(LocalStorage(tmp_path), End.CLOSED)

    made.add("plant", NOON, NOON + SECOND, instance="b", lease=FIRST, end=End.KILLED)

    assert errors(made.verify()) == []


def test_lease_numbers_that_do_not_rise_are_an_error(tmp_path: Path) -> None:
    made = taken_over(LocalStorage(tmp_path / "same"), End.STOPPED, later=Term(3, NOON, 10))
    assert texts(made, "lease-order") == [
        "plant@a and plant@b both wrote under lease 3: lease numbers must rise"
    ]
    earlier = Term(4, MIDNIGHT - 2 * HOUR, 10)
    made = Chained(LocalStorage(tmp_path / "before"))
    made.add("plant", MIDNIGHT - HOUR, NOON, instance="b", lease=FIRST, end=End.STOPPED)
    made.add("plant", NOON, END, instance="a", lease=earlier, end=End.STOPPED)
    assert texts(made, "lease-order") == [
        "lease 4 of plant@a began before lease 3 of plant@b: lease numbers must rise"
    ]
    made = Chained(LocalStorage(tmp_path / "back"))
    made.add("plant", MIDNIGHT - HOUR, NOON, instance="b", lease=SECOND_LEASE)
    made.add("plant", NOON, END, instance="b", lease=FIRST, end=End.STOPPED)
    assert texts(made, "lease-order") == [
        "plant@b wrote under lease 3 after lease 4: lease numbers must rise"
    ]


def test_the_leases_of_two_chains_are_not_compared_by_the_numbers_of_their_journals(
    tmp_path: Path,
) -> None:
    """A machine that could not read the head before it numbers its journals from 0 again."""
    made = Chained(LocalStorage(tmp_path))
    for begin in (MIDNIGHT, MIDNIGHT + HOUR):
        made.add("plant", begin, begin + HOUR, instance="a", lease=FIRST)
    made.add("plant", MIDNIGHT + 2 * HOUR, NOON, instance="a", lease=FIRST, end=End.STOPPED)
    made.links.clear()
    later = Term(4, NOON + SECOND, 10)
    made.add("plant", NOON + SECOND, END, instance="a", lease=later, start=NOON, end=End.STOPPED)

    assert texts(made, "lease-order") == []


def overlapping(root: Path, seconds: int, *, lease: bool = True) -> Chained:
    """Instance b hands over for `seconds` after a did for the first time."""
    made = Chained(LocalStorage(root))
    begin = NOON - SECOND
    first, second = (Term(each, begin, 10) if lease else NO_TERM for each in (1, 2))
    made.add(
        "plant", begin, NOON + HOUR, instance="b", lease=first, rows=seconds + 2, end=End.STOPPED
    )
    made.add("plant", NOON, END, instance="a", lease=second, rows=60, end=End.STOPPED)
    return made


def test_an_overlap_within_the_lease_is_a_fact_and_no_finding(tmp_path: Path) -> None:
    verified = overlapping(tmp_path, 2).verify()

    assert errors(verified) == []
    assert [(each.writer, each.overlap) for each in verified.holders] == [
        ("plant@b", 0),
        ("plant@a", 2 * SECOND),
    ]


def test_an_overlap_beyond_the_lease_is_an_error(tmp_path: Path) -> None:
    made = overlapping(tmp_path, 12)

    assert errors(made.verify()) == ["two-holders"]
    (text,) = texts(made, "two-holders")
    assert text == (
        "plant@b and plant@a both handed over from 2026-03-14 12:00:00 to 12:00:12 UTC by their"
        " clocks, longer than the 10 s of the lease"
    )


def test_late_answers_to_a_frozen_instance_prove_no_second_holder(tmp_path: Path) -> None:
    made = Chained(LocalStorage(tmp_path))
    made.add(
        "plant", NOON - 2 * SECOND, NOON + HOUR, instance="b", rows=2, end=End.STOPPED,
        lease=Term(1, NOON - 2 * SECOND, 10), answer_after=60 * SECOND,
    )  # fmt: skip
    made.add("plant", NOON, END, instance="a", lease=Term(2, NOON, 10), rows=60, end=End.STOPPED)

    assert errors(made.verify()) == []


def test_two_instances_without_a_lease_must_not_hand_over_at_once(tmp_path: Path) -> None:
    made = overlapping(tmp_path, 2, lease=False)

    (text,) = texts(made, "two-holders")

    assert text.endswith("and have no lease: one instance of a gateway is active")


def test_two_instances_with_their_own_disks_share_a_bucket(tmp_path: Path, bucket: Bucket) -> None:
    bucket.start()
    storage = RemoteStorage(bucket.url)
    for number, (name, lease) in enumerate({"b": FIRST, "a": SECOND_LEASE}.items()):
        time = NOON + number * HOUR
        location = parse_location(bucket.url, str(tmp_path / name))
        writer = ArchiveWriter(
            location, "edge", time, QUICK, instance=name, lease=lease, clock=partial(int, time)
        )
        store = NameStore(location.local, writer_name("edge", name))
        store.remember(f"digest{number}", ("level",))
        store.commit()
        put(writer, received([number], time=time), delivered([number], time=time))
        writer.close()
        store.close()

    assert storage.names(Path("_heads")) == ["edge@a.json", "edge@b.json"]
    assert storage.names(Path("_names")) == ["edge@a.jsonl", "edge@b.jsonl"]
    verified = verify_day(storage, DAY)
    assert errors(verified) == []
    assert [(each.writer, each.lease) for each in verified.holders] == [
        ("edge@b", 3),
        ("edge@a", 4),
    ]


def test_a_lost_disk_concerns_no_date_after_another_instance_took_over(tmp_path: Path) -> None:
    """Also when its instance came back on another machine, which names the lost journal."""
    made = Chained(LocalStorage(tmp_path))
    made.add("plant", MIDNIGHT - HOUR, MIDNIGHT + HOUR, instance="b", lease=FIRST)
    at = SECOND_LEASE.since
    made.add("plant", at, END, instance="a", lease=SECOND_LEASE, start=at)
    for number in (1, 2):
        begin = END + (number - 1) * 24 * HOUR
        made.add("plant", begin, begin + 24 * HOUR, instance="a", lease=SECOND_LEASE, start=at)
    stopped = END + 48 * HOUR
    made.add(
        "plant", stopped, stopped + 1, instance="a", lease=SECOND_LEASE, start=at, end=End.STOPPED
    )
    first = made.seals[0]
    lost = Previous(str(JournalName(first.writer, first.start, 1)), TAKEN, first.closed)
    third = Term(5, stopped + HOUR, 10)
    made.add(
        "plant", third.since, third.since + HOUR, instance="b", lease=third, start=third.since,
        end=End.STOPPED, previous=lost,
    )  # fmt: skip

    assert errors(made.verify()) == ["missing-seal"]
    assert [errors(made.verify(day)) for day in AFTER] == [[], [], []]
