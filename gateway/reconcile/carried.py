"""Earlier nights with copies in flight, which the next run reconciles again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from gateway.archive.layout import day_folder
from gateway.archive.storage import open_storage
from gateway.errors import GatewayError
from gateway.reconcile.job import Job, reconcile
from gateway.reconcile.progress import ShowStep
from gateway.reconcile.report.text import NO_ANSWER, Report, Row
from gateway.reconcile.session import spark_session

_IN_FLIGHT = "in flight"
_SPARE_DAYS = 2  # after the age limit, so that the night is reconciled once more past it


def reconcile_night(job: Job, show_step: ShowStep) -> Report:
    """Reconcile the date of `job`, and before it each earlier night with copies in flight.

    A night that cannot be reconciled again keeps its results; its row has no answer.

    Raises:
        ReconcileError: Spark does not start or does not finish.
        ArchiveError: the URL of the archive is malformed.
        OSError: the archive cannot be read, or the results cannot be written.
    """
    waiting = list(_in_flight(job))
    if not waiting:
        return reconcile(job, show_step)
    with spark_session(job.master):
        carried = [_again(night, before, show_step) for night, before in waiting]
        return reconcile(replace(job, carried=carried), show_step)


def _in_flight(job: Job) -> Iterator[tuple[Job, Mapping[str, object]]]:
    """Yield the earlier nights with copies in flight, with their summaries."""
    storage = open_storage(job.location)
    for age in range(job.spooled_days + _SPARE_DAYS, 0, -1):
        day = job.day - timedelta(days=age)
        output = None if job.output is None else job.output.with_name(f"date={day}")
        night = replace(job, day=day, output=output, mapping=None)
        summary = night.results.read_summary()
        if summary is not None and _count(summary) and storage.names(day_folder(Path(), day)):
            yield night, summary


def _again(night: Job, before: Mapping[str, object], show_step: ShowStep) -> Row:
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


def _count(summary: Mapping[str, object]) -> int:
    totals = summary.get("totals")
    found = totals.get(_IN_FLIGHT) if isinstance(totals, Mapping) else None
    return found if isinstance(found, int) else 0
