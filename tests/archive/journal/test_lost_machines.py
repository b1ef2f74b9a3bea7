"""A machine that is lost with its buffer: its head in the bucket is a witness that nobody replaces.

Each machine is a process with a buffer of its own, and the bucket is what survives.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.archive.heads import head_path, read_head
from gateway.archive.journal import rolling
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.local_head import last_end, last_link, number_of
from gateway.archive.journal.rolling import RollingJournal
from gateway.archive.layout import HOUR, JournalName, journals, parse_journal_name
from gateway.archive.storage import RemoteStorage
from gateway.night.archive.retired import retire
from gateway.night.archive.segments.convert import convert, main
from gateway.night.archive.verification.verify import Verified, verify_archive, verify_day
from tests.archive.bucket import Bucket
from tests.archive.journal.processes import Process, convert_all, no_converter, numbers, verified
from tests.archive.samples import DAY, NOON, START
from tests.night.archive.verification.chained import AFTER, errors

__all__ = ["no_converter"]  # a fixture

ONE_DAY = timedelta(days=1)
LOST = {"missing-seal", "missing-journal", "new-chain", "open-chain", "forked-chain"}


class KilledError(BaseException):
    """The end of a process at some step."""


@dataclass
class World:
    """A bucket, and the machines that write to it under one name."""

    folder: Path
    url: str
    machines: int = 0
    started: int = 0
    processes: list[Process] = field(default_factory=list)

    def machine(self) -> Path:
        self.machines += 1
        return self.folder / str(self.machines)

    def start(
        self, root: Path, *, fetch: bool = True, upload: bool = True, back: int = 0
    ) -> Process:
        """Start a gateway as it does: with what the archive has, then its head goes there."""
        self.started += 1
        if fetch:
            assert main([str(root), "--to", self.url, "--fetch", "edge"]) == 0
        start = NOON + self.started * HOUR - back
        process = Process(root, start, time=max(start, last_end(root, "edge")), url=self.url)
        if upload:
            self.convert(root)
        return process

    def convert(self, root: Path, *paths: Path) -> None:
        assert main([str(root), "--to", self.url, *map(str, paths or [Path("none")])]) == 0

    def lose(self, process: Process) -> None:
        """End the process, if it runs, and remove its disk."""
        if process.journal._journal is not None:  # noqa: SLF001
            process.kill()
        process.journal._lock.close()  # noqa: SLF001
        shutil.rmtree(process.root)

    def stop(self, process: Process) -> None:
        process.stop()
        self.convert(process.root, *journals(process.root))

    def verify(self) -> Verified:
        return verify_archive(RemoteStorage(self.url), today=AFTER)


@pytest.fixture
def world(tmp_path: Path, bucket: Bucket) -> World:
    bucket.start()
    return World(tmp_path, bucket.url)


def stopped_before(world: World) -> Path:
    """A machine whose first process stopped in good order."""
    root = world.machine()
    first = world.start(root)
    first.write(1, 2)
    world.stop(first)
    assert errors(world.verify()) == []
    return root


def roll(process: Process) -> None:
    opened = process.journal._journal  # noqa: SLF001
    assert opened is not None
    process.journal._roll(opened)  # noqa: SLF001


def in_the_first_journal(_: World, process: Process) -> None:
    process.write(3, 4)


def trailer_written(_: World, process: Process) -> None:
    process.write(3, 4)
    opened = process.journal._journal  # noqa: SLF001
    assert opened is not None
    opened.finish(process.time, stopped=False)


def next_opened_and_head_not_written(_: World, process: Process) -> None:
    process.write(3, 4)

    opened: list[Journal] = []

    def recorded(path: Path, head: Head, key: bytes | None) -> Journal:
        opened.append(Journal(path, head, key))
        return opened[-1]

    def killed(*_: object) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "Journal", recorded)
        patch.setattr(RollingJournal, "_state", killed)
        with pytest.raises(KilledError):
            roll(process)
    process.journal._journal = opened[0]  # noqa: SLF001
    process.kill()
    process.journal._journal = None  # noqa: SLF001


def head_written_and_not_uploaded(_: World, process: Process) -> None:
    process.write(3, 4)
    roll(process)
    process.write(5)


def upload_begun_before_the_head(world: World, process: Process) -> None:
    """The converter read the head before the roll, and ended before it uploads the next one."""
    process.write(3, 4)
    path = process.path
    world.convert(process.root)
    roll(process)
    process.write(5)
    convert(process.root, path, RemoteStorage(world.url))


STEPS = [
    in_the_first_journal,
    trailer_written,
    next_opened_and_head_not_written,
    head_written_and_not_uploaded,
    upload_begun_before_the_head,
]


@pytest.mark.parametrize(("step", "written"), list(zip(STEPS, (2, 2, 2, 3), strict=False)))
def test_a_process_that_is_killed_between_two_journals_loses_nothing(
    world: World, step: Callable[[World, Process], None], written: int
) -> None:
    process = Process(world.folder)
    step(world, process)
    if process.journal._journal is not None:  # noqa: SLF001
        process.kill()
    process.journal._lock.close()  # noqa: SLF001
    Process(world.folder, START + 1, time=NOON + HOUR).stop()
    convert_all(world.folder)

    assert (errors(verified(world.folder)), numbers(world.folder)) == ([], [3, 4, 5][:written])


def test_the_head_of_a_process_that_was_killed_before_it_names_its_last_journal(
    world: World,
) -> None:
    """A night converts both journals; no start of this writer may ever follow."""
    process = Process(world.folder)
    next_opened_and_head_not_written(world, process)
    convert_all(world.folder)

    assert errors(verified(world.folder)) == ["open-chain"]  # and no `old-head`
    head = read_head(world.folder, "edge").head
    assert head is not None
    assert head.last == str(JournalName("edge", START, 1))


def test_the_head_in_a_bucket_states_how_a_killed_process_ended(world: World) -> None:
    """The converter that uploads its last journal also uploads the head that names it."""
    process = world.start(world.machine())
    next_opened_and_head_not_written(world, process)
    process.journal._lock.close()  # noqa: SLF001
    world.convert(process.root, *journals(process.root))

    assert errors(world.verify()) == ["open-chain"]  # and no `old-head`


def test_what_a_lost_machine_had_open_is_missing_when_the_machine_after_it_ends_too(
    world: World,
) -> None:
    """The head of the second machine names it, and no seal of the second is in the bucket."""
    lost = world.start(stopped_before(world))
    lost.write(3)
    world.lose(lost)
    second = world.start(world.machine())
    second.kill()

    found = world.verify().findings

    assert [each.rule for each in found if "000001" in each.place] == ["missing-seal"]


def test_a_machine_that_comes_back_with_a_journal_that_no_head_named_is_no_second_gateway(
    world: World,
) -> None:
    """The machine after it took the head from before that journal: their numbers are equal."""
    away = world.start(world.machine())
    world.convert(away.root)
    next_opened_and_head_not_written(world, away)
    away.journal._lock.close()  # noqa: SLF001
    other = world.start(world.machine())
    other.write(5)
    assert LOST & set(errors(world.verify()))

    world.convert(away.root, *journals(away.root))
    world.stop(other)

    assert errors(world.verify()) == []


@pytest.mark.parametrize(
    "back", [0, pytest.param(2 * HOUR, marks=pytest.mark.nightly)], ids=["", "clock-behind"]
)
@pytest.mark.parametrize("fetch", [True, False], ids=["", "away-at-the-start"])
@pytest.mark.parametrize(
    "stop", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["after-a-stop", "first"]
)
@pytest.mark.parametrize("step", STEPS)
def test_a_machine_that_is_lost_between_two_journals_is_an_error_for_ever(
    world: World, step: Callable[[World, Process], None], *, stop: bool, fetch: bool, back: int
) -> None:
    root = stopped_before(world) if stop else world.machine()
    process = world.start(root)
    step(world, process)
    world.lose(process)
    other = world.start(world.machine(), fetch=fetch, upload=fetch, back=back)
    other.write(6, 7)
    world.stop(other)

    found = world.verify()
    assert LOST & set(errors(found))
    assert back or not any(each.begin <= process.time < each.end for each in found.pauses)
    again = world.start(other.root)
    again.write(8)
    world.stop(again)
    assert LOST & set(errors(world.verify()))


@pytest.mark.parametrize("fetch", [True, False], ids=["", "away-at-the-start"])
def test_a_machine_that_is_lost_after_its_stop_loses_nothing(world: World, *, fetch: bool) -> None:
    shutil.rmtree(stopped_before(world))
    other = world.start(world.machine(), fetch=fetch)
    other.write(3)
    world.stop(other)

    assert errors(world.verify()) == []


def test_a_new_machine_continues_the_chain_and_the_clock_of_the_lost_one(world: World) -> None:
    process = world.start(stopped_before(world))
    process.write(3)
    at, opened = process.time, process.path.stem
    world.lose(process)

    root = world.machine()
    other = world.start(root, back=9 * HOUR)

    assert other.time >= at
    link = last_link(root, "edge")
    assert link is not None
    assert number_of(link) == 2
    previous = other.journal._previous  # noqa: SLF001
    assert previous is not None
    assert (previous.journal, previous.taken) == (opened, True)
    world.lose(other)


def test_a_disk_that_comes_back_heals_what_its_loss_broke(world: World) -> None:
    process = world.start(stopped_before(world))
    process.write(3)
    process.kill()
    other = world.start(world.machine())
    other.write(4)
    assert LOST & set(errors(world.verify()))

    world.convert(process.root, *journals(process.root))
    world.stop(other)

    assert errors(world.verify()) == []


def test_a_machine_that_comes_back_after_the_next_one_was_lost_states_no_older_head(
    world: World,
) -> None:
    """Its upload sets the head of the lost machine aside, which the third machine then takes."""
    first = world.start(world.machine())
    first.write(1)
    first.kill()
    second = world.start(world.machine())
    second.write(2)
    roll(second)
    world.convert(second.root, *[each for each in journals(second.root) if each != second.path])
    world.lose(second)

    world.convert(first.root, *journals(first.root))

    assert "old-head" not in errors(world.verify())
    storage = RemoteStorage(world.url)
    assert "missing-journal" in errors(verify_day(storage, AFTER, today=AFTER + ONE_DAY))
    retire(storage, "edge", "it was sold", NOON, None)
    assert "missing-journal" not in errors(verify_day(storage, AFTER, today=AFTER + ONE_DAY))
    third = world.start(world.machine())
    link = last_link(third.root, "edge")
    world.lose(third)
    assert link is not None
    assert parse_journal_name(link.journal) == JournalName("edge", third.start, 3)


def test_all_journals_before_the_one_that_a_head_says_was_taken_are_missing(world: World) -> None:
    """Two machines in a row were lost; the third names the open journal of the second."""
    root = stopped_before(world)
    for number in (3, 4):
        lost = world.start(root)
        lost.write(number)
        world.lose(lost)
        root = world.machine()
    last = world.start(root)
    last.kill()
    last.journal._lock.close()  # noqa: SLF001

    days = {each.place.split("/")[1] for each in world.verify().findings if each.rule in LOST}

    assert f"date={DAY}" in days


def test_two_machines_of_one_name_hide_nothing_of_each_other(world: World) -> None:
    first = world.start(world.machine())
    first.write(1)
    second = world.start(world.machine())
    second.write(2)
    roll(first)
    world.convert(first.root, *[each for each in journals(first.root) if each != first.path])
    world.lose(second)
    world.stop(first)

    assert LOST & set(errors(world.verify()))


def test_restarts_while_the_bucket_is_away_set_nothing_aside(world: World) -> None:
    root = world.machine()
    world.start(root).kill()
    for _ in range(3):
        world.start(root, fetch=False, upload=False).kill()
    last = world.start(root, fetch=False, upload=False)
    world.stop(last)

    assert errors(world.verify()) == []
    assert RemoteStorage(world.url).names(head_path("edge").parent) == ["edge.json"]
    assert {finding.rule for finding in world.verify().findings} == {"killed-journal"}
