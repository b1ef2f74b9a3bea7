"""One micro-batch: the dates to reconcile again, the watermark, and the commit.

The rules for order, taps and late outcomes need more than the rows of one batch. A date with new
files is therefore reconciled as a whole, by its digests first, until the watermark has passed it:
then it is sealed.
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
from gateway.reconcile.follow.day import DayReconciler, FollowOptions
from gateway.reconcile.follow.state import (
    FollowState,
    advanced,
    first_date,
    read_state,
    sealed_until,
    write_state,
)
from gateway.reconcile.input.inputs import find_inputs
from gateway.reconcile.progress import ShowStep

Clock: TypeAlias = Callable[[], datetime]

_MAX_LATE: Final = 100  # findings about late files, the newest
_HOURS: Final = 24
_DAY: Final = timedelta(days=1)


def reconcile_batch(  # noqa: PLR0913, PLR0917  # the parameters of one batch
    spark: SparkSession,
    options: FollowOptions,
    number: int,
    landed: Sequence[Path],
    show_step: ShowStep,
    print_line: ShowStep,
    clock: Clock,
) -> FollowState:
    """Reconcile the open dates that changed, and commit; skip a batch that is committed already.

    `landed` are the new files, by their paths in the archive. `show_step` gets the steps,
    `print_line` the new exceptions and findings.

    Raises:
        ReconcileError: Spark failed, and no damaged file is the cause.
    """
    before = read_state(options.output)
    if before is not None and before.batch >= number:
        return before
    now = clock()
    known = days(options.root)
    state = before or FollowState(number - 1, first_date(known, now.date()))
    show_step(f"batch {number}: checking {len(landed)} new files")
    opened = [day for day in known if day >= state.open_from]
    inputs = {day: find_inputs(options.root, day, options.margin) for day in opened}
    last = dict(state.last)
    for each in inputs.values():
        last = advanced(last, each.last, int(now.timestamp() * 1_000_000))
    open_from = sealed_until(last, state.open_from, options.margin)
    reconciler = DayReconciler(
        spark, options, number, show_step, print_line, last, list(state.damaged)
    )
    results = {each.day: each for each in state.days}
    changed = {day for day in opened if day < open_from or day not in results}
    for day in sorted(changed | (touched(landed, options.margin) & {*opened})):
        results[day] = reconciler.reconcile(day, inputs[day], sealed=day < open_from)
    late = list(_too_late(landed, state.open_from)) if before else []
    known_findings = {finding for each in state.days for finding in each.findings}
    found = [finding for day in opened for finding in results[day].findings]
    new = [finding for finding in found if finding not in known_findings]
    for finding in [*late, *new]:
        print_line(str(finding))
    state = FollowState(
        number,
        open_from,
        last,
        [results[day] for day in opened],
        [each for each in reconciler.damaged if _is_near(each, open_from)],
        [*state.late, *late][-_MAX_LATE:],
    )
    show_step(f"batch {number}: committing")
    write_state(options.output, state)
    for folder in reconciler.outdated:
        rmtree(folder, ignore_errors=True)
    return state


def touched(landed: Iterable[Path], margin: int) -> set[date]:
    """Return the dates whose verdict new files may change: their own, and neighbours in reach."""
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
    """Yield a warning for each new file of a sealed date."""
    for path in sorted(landed):
        day = parse_day(path.parts[0])
        if day is not None and day < open_from:
            text = f"came after {day} was sealed; gateway reconcile --date {day} counts it"
            yield warning("late-segment", str(path), text)


def _is_near(damaged: Finding, open_from: date) -> bool:
    """Return whether the damaged file may still be read, in an open date or beside one."""
    day = parse_day(Path(damaged.place).parts[0])
    return day is not None and day >= open_from - _DAY
