"""Earlier nights that the next run reconciles again.

They have copies in flight, or results whose publication was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gateway.archive.layout import parse_day
from gateway.archive.storage import open_storage
from gateway.errors import GatewayError
from gateway.reconcile.job import Job, reconcile
from gateway.reconcile.report.text import NO_ANSWER, Report, Row
from gateway.reconcile.session import spark_session
from gateway.terminal.progress import ShowStep

_IN_FLIGHT = "in flight"


def reconcile_night(job: Job, show_step: ShowStep) -> Report:
    """Reconcile the date of `job`, and before it each earlier night that waits for it.

    A night that cannot be reconciled again keeps its results; its row has no answer.

    Raises:
        ReconcileError: Spark does not start or does not finish.
        ArchiveError: the URL of the archive is malformed.
        OSError: the archive cannot be read, or the results cannot be written.
    """
    waiting = list(_waiting(job))
    if not waiting:
        return reconcile(job, show_step)
    with spark_session(job.master):
        carried = [_again(night, before, show_step) for night, before in waiting]
        return reconcile(replace(job, carried=carried), show_step)


def _waiting(job: Job) -> Iterator[tuple[Job, Row]]:
    """Yield the earlier nights of the archive to reconcile again, with their summaries.

    A replacement of results in a bucket may be interrupted between its files: then the summary is
    in the hidden folder. A hidden folder without one is of a run that never came to its end.
    """
    archived = {parse_day(name) for name in open_storage(job.location).names(Path())}
    for day, hidden in sorted(job.results.days().items()):
        if day >= job.day or day not in archived:
            continue
        output = None if job.output is None else job.output.with_name(f"date={day}")
        night = replace(job, day=day, output=output, mapping=None)
        unpublished = night.results.read_unpublished()
        published = night.results.read_summary()
        broken = unpublished is not None or (published is None and not hidden)
        if broken or _count(published or {}):
            yield night, published or unpublished or {}


def _again(night: Job, before: Row, show_step: ShowStep) -> Row:
    row = {
        "date": str(night.day),
        "before": _count(before),
        "after": _count(before),
        "status_before": before.get("status"),
        "status": NO_ANSWER,
        "verdict": "no answer",
    }
    try:
        report = reconcile(night, show_step)
    except (GatewayError, OSError) as fault:
        show_step(f"{night.day} is not reconciled again: {fault}")
        return row
    after = report.total(_IN_FLIGHT) if report.answered else row["before"]
    return {**row, "after": after, "status": report.status, "verdict": report.verdict}


def _count(summary: Row) -> int:
    totals = summary.get("totals")
    found = totals.get(_IN_FLIGHT) if isinstance(totals, Mapping) else None
    return found if isinstance(found, int) else 0
