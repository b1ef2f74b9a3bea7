"""One micro-batch: which dates it judges again, how far the watermark is, and the commit.

Rules of order, of taps and of late ends look far beyond a minute, so that a verdict made of the
rows of one batch could not be the night's. A date that new files speak of is therefore judged as a
whole, by its digests first, until the watermark has left it behind: then it is sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Final, TypeAlias

from pyspark.sql import SparkSession

from gateway.archive.layout import days, parse_day
from gateway.reconcile.findings import Finding, warning
from gateway.reconcile.follow.judge import Following, Judge
from gateway.reconcile.follow.state import (
    State,
    advanced,
    first_date,
    read_state,
    sealed_until,
    write_state,
)
from gateway.reconcile.input.inputs import find_inputs
from gateway.reconcile.progress import Say

Clock: TypeAlias = Callable[[], datetime]

_LATE: Final = 100  # files that came too late, the newest
_HOURS: Final = 24
_DAY: Final = timedelta(days=1)


def judge_batch(  # noqa: PLR0913, PLR0917  # the terms of one batch
    spark: SparkSession,
    terms: Following,
    number: int,
    landed: Sequence[Path],
    say: Say,
    tell: Say,
    clock: Clock,
) -> State:
    """Judge the open dates that changed, and commit; one that is committed is left as it is.

    `landed` are the new files, by their paths below the archive; `say` hears the steps, `tell`
    what is new.

    Raises:
        ReconcileError: Spark failed, and no file is to blame.
    """
    before = read_state(terms.output)
    if before is not None and before.batch >= number:
        return before
    now = clock()
    known = days(terms.root)
    state = before or State(number - 1, first_date(known, now.date()))
    say(f"batch {number}: looking at {len(landed)} new files")
    opened = [day for day in known if day >= state.open_from]
    inputs = {day: find_inputs(terms.root, day, terms.margin) for day in opened}
    last = dict(state.last)
    for each in inputs.values():
        last = advanced(last, each.last, int(now.timestamp() * 1_000_000))
    open_from = sealed_until(last, state.open_from, terms.margin)
    judge = Judge(spark, terms, number, say, tell, last, list(state.damaged))
    judged = {each.day: each for each in state.days}
    changed = {day for day in opened if day < open_from or day not in judged}
    for day in sorted(changed | (touched(landed, terms.margin) & {*opened})):
        judged[day] = judge.judge(day, inputs[day], sealed=day < open_from)
    late = list(_too_late(landed, state.open_from)) if before else []
    told = {finding for each in state.days for finding in each.findings}
    new = [finding for day in opened for finding in judged[day].findings if finding not in told]
    for finding in [*late, *new]:
        tell(str(finding))
    state = State(
        number,
        open_from,
        last,
        [judged[day] for day in opened],
        [each for each in judge.damaged if _is_near(each, open_from)],
        [*state.late, *late][-_LATE:],
    )
    say(f"batch {number}: committing")
    write_state(terms.output, state)
    for folder in judge.outdated:
        rmtree(folder, ignore_errors=True)
    return state


def touched(landed: Iterable[Path], margin: int) -> set[date]:
    """The dates whose verdict new files may change: their own, and one whose margin they are in."""
    found: set[date] = set()
    for path in landed:
        day, hour = parse_day(path.parts[0]), path.parts[1].removeprefix("hour=")
        if day is None or not hour.isdecimal():
            continue
        found.add(day)
        if int(hour) < margin:
            found.add(day - _DAY)
        if int(hour) >= _HOURS - margin:
            found.add(day + _DAY)
    return found


def _too_late(landed: Iterable[Path], open_from: date) -> Iterator[Finding]:
    """A warning for each file of a date that is sealed."""
    for path in sorted(landed):
        day = parse_day(path.parts[0])
        if day is not None and day < open_from:
            text = f"came after {day} was sealed; gateway reconcile --date {day} counts it"
            yield warning("late-segment", str(path), text)


def _is_near(damaged: Finding, open_from: date) -> bool:
    """Whether a file may still be read: dates beside an open one are, for their margin."""
    day = parse_day(Path(damaged.place).parts[0])
    return day is not None and day >= open_from - _DAY
