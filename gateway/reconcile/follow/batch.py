"""One micro-batch: the dates to reconcile again, the watermark, and the commit.

The rules for order, taps and late outcomes need more than the rows of one batch. A date with new
files is therefore reconciled as a whole, by its id sets, until the watermark has passed it: then it
is sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Final, TypeAlias

from pyspark.sql import SparkSession

from gateway.archive.findings import Finding, warning
from gateway.archive.layout import days, parse_day, safe_name, writer_of
from gateway.archive.storage import LocalStorage, Storage
from gateway.errors import ArchiveError
from gateway.reconcile.follow.day import DayReconciler, FollowOptions
from gateway.reconcile.follow.state import (
    SEALING_HOURS,
    FollowState,
    advanced,
    first_date,
    read_state,
    sealed_until,
    write_state,
)
from gateway.reconcile.input.inputs import list_inputs
from gateway.reconcile.input.row_reader import SegmentFile, row_groups
from gateway.terminal.progress import ShowStep

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
    storage = LocalStorage(options.root.resolve())
    inputs = {day: list_inputs(storage, day) for day in opened}
    micros = int(now.timestamp() * 1_000_000)
    last = advanced(state.last, last_rows(storage, landed), micros)
    open_from = sealed_until(last, state.open_from)
    reconciler = DayReconciler(
        spark, options, number, show_step, print_line, last, micros, list(state.damaged)
    )
    results = {each.day: each for each in state.days}
    changed = {day for day in opened if day < open_from or day not in results}
    for day in sorted(changed | (touched(landed) & {*opened})):
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


def touched(landed: Iterable[Path]) -> set[date]:
    """Return the dates whose verdict new files may change: their own, and neighbours in reach."""
    found: set[date] = set()
    for path in landed:
        day, hour = parse_day(path.parts[0]), path.parts[1].removeprefix("hour=")
        if day is None or not hour.isdecimal():
            continue
        found.add(day)
        if int(hour) < SEALING_HOURS:
            found.add(day - _DAY)
        if int(hour) >= _HOURS - SEALING_HOURS:
            found.add(day + _DAY)
    return found


def last_rows(storage: Storage, landed: Iterable[Path]) -> dict[str, int]:
    """Return the time of the newest row of each writer in new files, in microseconds.

    A merged file has rows of all writers of a gateway. A damaged file has none; the batch that
    reads it reports it.
    """
    last: dict[str, int] = {}
    for path in landed:
        try:
            tables = list(row_groups(storage, SegmentFile(path), ("gateway", "time")))
        except ArchiveError:
            continue
        for rows in tables:
            found = rows.group_by("gateway").aggregate([("time", "max")])
            for gateway, time in zip(found["gateway"], found["time_max"], strict=True):
                writer = writer_of(path) or safe_name(gateway.as_py())
                last[writer] = max(time.value or 0, last.get(writer, 0))
    return last


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
