"""The rows of gaps: a gap that began and has not ended lasts to the end of the date, or to now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from gateway.archive.gaps import DID_NOT_RUN, SourceGap
from gateway.archive.heads import (
    Outage,
    SourceConnection,
    StoredHead,
    WriterHead,
    head_path,
    open_gaps,
)
from gateway.night.archive.verification.chains import NotRunning
from gateway.night.reconcile.report.source_gaps import reported_gaps

DAY = date(2026, 3, 14)
HOUR = 3_600_000_000
MIDNIGHT = int(datetime(2026, 3, 14, tzinfo=UTC).timestamp()) * 1_000_000
STOP = MIDNIGHT + 14 * HOUR
LATER = MIDNIGHT + 1_000 * HOUR


def gap(rule: str, begin: int, end: int, reason: str = "", endpoint: str = "plant") -> SourceGap:
    return SourceGap("east", "orders", endpoint, "a/#", rule, reason, begin, end, None)


def pause(begin: int, end: int) -> NotRunning:
    return NotRunning("east", begin, end)


STOPPED = gap("not-running", STOP, STOP, "the gateway was stopped")


def shown(
    found: Sequence[SourceGap],
    lasting: Sequence[SourceGap] = (),
    pauses: Sequence[NotRunning] = (),
    now: int = LATER,
    day: date = DAY,
) -> list[tuple[str, str, bool]]:
    """Interval, reason and whether it is counted, of the gaps of sources."""
    return [
        (f"{each.begin:%H:%M} to {each.end:%H:%M}", each.reason, not each.kept)
        for each in reported_gaps(found, lasting, pauses, day, now)
        if each.endpoint
    ]


@pytest.mark.parametrize(
    ("pauses", "found"),
    [
        pytest.param(
            [pause(STOP + 1, MIDNIGHT + 24 * HOUR)],
            ("14:00 to 00:00", "the gateway stopped at 14:00:00 and did not run again that day"),
            id="not-again",
        ),
        pytest.param(
            [pause(MIDNIGHT, MIDNIGHT + HOUR), pause(STOP + 1, STOP + HOUR)],
            ("14:00 to 15:00", "the gateway was stopped"),
            id="again-without-the-source",
        ),
    ],
)
def test_a_stop_without_a_start_lasts_while_the_gateway_does_not_run(
    pauses: Sequence[NotRunning], found: tuple[str, str]
) -> None:
    assert shown([STOPPED], pauses=pauses) == [(*found, True)]


def test_a_stop_is_a_gap_until_the_next_start() -> None:
    ended = replace(STOPPED, end=STOP + 5 * HOUR)

    assert shown([ended]) == [("14:00 to 19:00", "the gateway was stopped", True)]


@pytest.mark.parametrize(
    ("rule", "reason", "begin", "lines"),
    [
        pytest.param("away", DID_NOT_RUN, STOP - 1, [], id="its-gateway-did-not-run"),
        pytest.param("away", DID_NOT_RUN, STOP + 5 * HOUR, [False], id="another-time"),
        pytest.param("away", "connection lost", STOP - 1, [False], id="away"),
        pytest.param("not-running", DID_NOT_RUN, STOP - 1, [True], id="nothing-was-kept"),
    ],
)
def test_a_stop_that_lost_nothing_is_one_line(
    rule: str, reason: str, begin: int, lines: list[bool]
) -> None:
    """The line of the gateway tells of all its sources; each takeover of a pair is such a stop."""
    found = gap(rule, begin, begin + HOUR, reason)

    rows = reported_gaps([found], (), [pause(STOP, STOP + HOUR)], DAY, LATER)

    assert [not each.kept for each in rows if each.endpoint] == lines
    assert len(rows) == len(lines) + 1


def test_a_gap_of_today_lasts_until_now() -> None:
    pauses = [pause(STOP + 1, MIDNIGHT + 24 * HOUR)]
    rows = reported_gaps([STOPPED], (), pauses, DAY, STOP + HOUR)

    assert [(f"{each.begin:%H:%M}", f"{each.end:%H:%M}") for each in rows] == [
        ("14:00", "15:00"), ("14:00", "15:00"),
    ]  # fmt: skip


def test_the_states_of_sources_tell_which_gaps_have_not_ended() -> None:
    """A date on which a gateway did not run at all has no rows of it."""
    away = gap("disconnected", STOP, STOP + 60_000_000, "connection lost", "mine")
    head = stated(
        plant=Outage(STOP, "not-running", "the gateway was stopped"),
        mine=Outage(STOP, "disconnected", "connection lost"),
        idle=None,
    )
    recorded, lasting = [STOPPED, away], open_gaps([head])
    assert shown(recorded, lasting) == [
        ("14:00 to 00:00", "connection lost", True),
        ("14:00 to 00:00", "the gateway stopped at 14:00:00 and has not run since", True),
    ]
    assert shown(recorded, lasting, now=STOP + HOUR)[0][0] == "14:00 to 15:00"

    next_day, before = date(2026, 3, 15), date(2026, 3, 13)
    reasons = [reason for _, reason, _ in shown([], lasting, day=next_day)]
    assert reasons == [
        "connection lost", "the gateway stopped at 2026-03-14 14:00:00 and has not run since",
    ]  # fmt: skip
    assert shown(recorded, lasting, day=before) == []


def stated(**outages: Outage | None) -> StoredHead:
    """The head of a gateway with the states of its sources."""
    states = {
        name: SourceConnection(STOP, known=True, outage=outage, keeps=False)
        for name, outage in outages.items()
    }
    head = WriterHead("east", "east", STOP, sources=states)
    return StoredHead(head_path("east"), head)
