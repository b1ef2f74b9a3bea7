"""The clock of rows: it follows the wall clock, and no step of that one turns it back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.archive.journal.local_head import LocalHead
from gateway.archive.journal.records import Rows, pack
from gateway.archive.journal.rolling import ArchiveOptions, RollingJournal
from gateway.archive.location import ArchiveLocation
from gateway.clock import MAX_AHEAD, RowClock, now, since_boot
from tests.waiting import PATIENCE

SECOND = 1_000_000
START = 1_790_000_000 * SECOND


class Machine:
    """A machine whose wall clock a test sets. Mutable."""

    def __init__(self) -> None:
        self.elapsed, self.offset = 0, START
        self.clock = RowClock(self.wall, lambda: 1_000 * self.elapsed)

    def wall(self) -> int:
        return self.offset + self.elapsed

    def pass_time(self, seconds: float) -> None:
        self.elapsed += int(seconds * SECOND)

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock this much forward, or back."""
        self.offset += int(seconds * SECOND)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_rows_have_the_time_of_the_wall_clock_while_nobody_sets_it(machine: Machine) -> None:
    for _ in range(3):
        machine.pass_time(10)
        assert machine.clock() == machine.wall()
        assert machine.clock.anchor() == machine.wall()


def test_a_clock_set_back_during_a_journal_changes_no_time_of_it(machine: Machine) -> None:
    machine.pass_time(10)
    machine.set_wall(-2)
    machine.pass_time(1)

    assert machine.clock() == START + 11 * SECOND


def test_a_journal_that_opens_after_a_step_back_continues_at_half_speed(machine: Machine) -> None:
    machine.set_wall(-2)
    assert machine.clock.anchor() == START
    machine.pass_time(2)
    assert machine.clock() == START + SECOND == machine.wall() + SECOND
    machine.pass_time(2)
    assert machine.clock() == machine.wall()
    machine.pass_time(60)
    assert machine.clock() == machine.wall()


def test_a_journal_that_opens_after_a_step_forward_follows_it(machine: Machine) -> None:
    machine.set_wall(3_600)
    machine.pass_time(1)
    assert machine.clock() == START + SECOND
    assert machine.clock.anchor() == machine.wall() == START + 3_601 * SECOND


def test_a_step_forward_that_is_taken_back_never_shows(machine: Machine) -> None:
    machine.set_wall(3_600)
    machine.pass_time(1)
    machine.set_wall(-3_600)
    machine.clock.anchor()

    assert machine.clock() == machine.wall()


def test_a_run_continues_from_the_end_of_the_run_before(machine: Machine) -> None:
    machine.clock.continue_from(START + 3_600 * SECOND)
    assert machine.clock() == START + 3_600 * SECOND

    machine.clock.continue_from(START - SECOND)
    assert machine.clock() == START + 3_600 * SECOND


def test_a_run_does_not_continue_from_an_end_more_than_a_day_ahead(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.clock.continue_from(START + MAX_AHEAD + SECOND)

    assert machine.clock() == START
    assert "24 h ahead" in caplog.text


@given(
    st.lists(st.tuples(st.sampled_from(("pass", "set", "anchor")), st.integers(-(10**6), 10**6)))
)
def test_no_step_of_the_wall_clock_turns_the_times_back(steps: list[tuple[str, int]]) -> None:
    machine = Machine()
    latest = machine.clock()
    for step, seconds in steps:
        match step:
            case "pass":
                machine.pass_time(abs(seconds))
            case "set":
                machine.set_wall(seconds)
            case _:
                assert machine.clock.anchor() >= latest
        assert machine.clock() >= latest
        latest = machine.clock()


def test_each_journal_follows_the_wall_clock_and_an_idle_one_does(
    tmp_path: Path, machine: Machine
) -> None:
    options = ArchiveOptions(segment_bytes=1)
    head = LocalHead(tmp_path, "edge", "edge", clock=machine.clock)
    journal = RollingJournal(ArchiveLocation(tmp_path), head, START, options)
    try:
        machine.set_wall(60)
        journal.maintain()
        assert machine.clock() == START + 60 * SECOND, "it has no rows"
        journal.write(pack([Rows(1, {"time": machine.clock()})], {}), 1)
        machine.set_wall(60)
        assert machine.clock() == START + 60 * SECOND
        journal.maintain()
        assert machine.clock() == START + 120 * SECOND, "the next one opens"
    finally:
        journal.close(PATIENCE)


def test_the_real_clocks_agree_and_run() -> None:
    clock = RowClock()
    booted = since_boot()

    assert abs(clock() - now()) < 60 * SECOND
    assert since_boot() >= booted > 0
