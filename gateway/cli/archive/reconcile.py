"""`gateway reconcile`: prove a night's traffic, and say so by table, JSON and exit status."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from rich.console import Console

from gateway.archive.layout import reconciled_folder
from gateway.cli.archive.follow import run_follow
from gateway.cli.archive.retranslate import retranslator
from gateway.cli.parsers import Commands
from gateway.errors import GatewayError, ReconcileError
from gateway.reconcile.driver import check_driver
from gateway.reconcile.findings import error
from gateway.reconcile.progress import progress
from gateway.reconcile.report.html import NAME
from gateway.reconcile.report.text import NO_ANSWER, Report, show, to_json


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser(
        "reconcile",
        help="prove that nothing was lost, doubled or altered on a date",
        description="Exit status: 0 clean, 1 a promise was broken, 2 no answer.",
    )
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", type=Path, help="folder the gateway archives to")
    add("--date", metavar="D", help="the date, UTC, as YYYY-MM-DD")
    add("--follow", action="store_true", help="judge what lands, as it lands, until it is stopped")
    add("--full", action="store_true", help="join every message, check every page and digest")
    add("--strict", action="store_true", help="marked duplicates and what is late break it too")
    add("--mapping", type=Path, metavar="CONFIG", help="make every name anew and compare")
    add("--master", default="local[*]", metavar="URL", help="Spark master (default: local[*])")
    add("--json", type=Path, metavar="FILE", help="write the summary there too")
    add("--output", type=Path, metavar="DIR", help="for the tables (ARCHIVE/_reconciled)")
    add("--margin-hours", type=int, default=6, metavar="H", help="of the days beside it (6)")
    add("--in-flight-seconds", type=int, default=120, metavar="S", help="before the cut (120)")
    add(
        "--late", type=int, default=300, metavar="S", help="after receipt, a delivery is late (300)"
    )
    add("--every", type=float, default=15, metavar="S", help="--follow: between two looks (15)")
    add("--once", action="store_true", help="--follow: judge what has landed, then end")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reconcile as `args` say; every failure is a line and an exit status."""
    errors = Console(stderr=True)
    try:
        if args.follow:
            return run_follow(args, errors)
        report = _reconcile(args, errors)
    except (GatewayError, OSError) as fault:
        _complain(fault, errors)
        finding = error("no-answer", str(args.archive), str(fault))
        report = Report(str(args.archive), args.date or "", [finding], answered=False)
    else:
        show(report, Console(file=sys.stdout))
    try:
        if args.json is not None:
            args.json.write_text(to_json(report), encoding="utf-8")
    except OSError as fault:
        _complain(fault, errors)
        return NO_ANSWER
    return report.status


def _complain(fault: Exception, errors: Console) -> None:
    errors.print(f"gateway reconcile: {fault}", style="red", markup=False, soft_wrap=True)


def _reconcile(args: argparse.Namespace, errors: Console) -> Report:
    if args.date is None or args.once:
        raise ReconcileError("give --date D for a night, or --follow, and --once with that alone")
    day = _day(args.date)
    if not args.archive.is_dir():
        raise ReconcileError(f"archive {str(args.archive)!r}: is not a folder")
    if min(args.margin_hours, args.in_flight_seconds, args.late) < 0:
        raise ReconcileError("--margin-hours, --in-flight-seconds and --late are 0 or more")
    check_driver()
    from gateway.reconcile.job import Job, reconcile  # noqa: PLC0415  # the extra may be absent

    default = reconciled_folder(args.archive, day)
    job = Job(
        root=args.archive,
        day=day,
        output=default if args.output is None else args.output / default.name,
        master=args.master,
        full=args.full,
        strict=args.strict,
        margin=args.margin_hours,
        in_flight=args.in_flight_seconds,
        late=args.late,
        translator=None if args.mapping is None else retranslator(args.mapping),
    )
    with progress(errors) as say:
        report = reconcile(job, say)
    told = f"report: {job.output / NAME}"
    errors.print(told, highlight=False, markup=False, soft_wrap=True)
    return report


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as fault:
        raise ReconcileError(f"date {text!r}: {fault}; write YYYY-MM-DD") from fault
