"""Chains whose clock stepped, slept or was set back."""

from __future__ import annotations

from pathlib import Path

from gateway.archive.layout import HOUR
from gateway.night.archive.seals.seal import End
from tests.archive.samples import DAY, NOON, START
from tests.night.archive.verification.chained import (
    chained,
    errors,
    sealed_day,
    warnings,
)
from tests.night.archive.verification.test_verify import NEXT


def test_a_journal_of_a_stepped_clock_proves_its_rows(tmp_path: Path) -> None:
    made = sealed_day(tmp_path, gateways=("east",))
    made.add("east", NOON, NOON + 96 * HOUR, start=START + 1)  # the clock was four days behind
    made.add("east", NOON + 96 * HOUR, NOON + 97 * HOUR, start=START + 1, end=End.STOPPED)

    assert "unsealed-segment" not in errors(made.verify())


def test_a_journal_that_ended_before_it_began_is_of_both_dates(tmp_path: Path) -> None:
    made = chained(tmp_path)
    made.add("east", NOON + 24 * HOUR, NOON, end=End.KILLED)  # the clock was set back
    made.add("east", NOON, NOON + HOUR, start=START + 1, end=End.STOPPED)

    assert warnings(made.verify()) == ["killed-journal"]
    assert warnings(made.verify(DAY + NEXT)) == ["killed-journal"]


def test_a_clock_set_back_over_a_whole_date_leaves_nothing_unknown_there(tmp_path: Path) -> None:
    made = chained(tmp_path)
    made.add("east", NOON + 48 * HOUR, NOON, end=End.STOPPED)

    for days in range(3):
        assert not errors(made.verify(DAY + days * NEXT))


def test_a_suspended_gateway_covers_the_dates_between(tmp_path: Path) -> None:
    made = chained(tmp_path)
    made.add("east", NOON, NOON + 96 * HOUR)
    made.add("east", NOON + 96 * HOUR, NOON + 97 * HOUR, end=End.STOPPED)

    assert made.verify().findings == ()
    assert made.verify(DAY + 2 * NEXT).findings == ()
