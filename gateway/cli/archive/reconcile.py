"""`gateway reconcile`: reconcile one day, and report by table, JSON and exit status."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from rich.console import Console

from gateway.archive.layout import reconciled_folder
from gateway.cli.archive.follow import run_follow
from gateway.cli.archive.retranslate import retranslator
from gateway.cli.parsers import Commands, add_command
from gateway.errors import GatewayError, ReconcileError
from gateway.reconcile.driver import check_driver
from gateway.reconcile.findings import error
from gateway.reconcile.progress import progress
from gateway.reconcile.report.text import NO_ANSWER, REPORT_PAGE, Report, print_report, to_json


def add_parsers(commands: Commands) -> None:
    parser = add_command(
        commands,
        "reconcile",
        "reconcile one day of the archive",
        "Finds lost, late, altered, reordered and duplicated messages. Exit status: 0 clean,"
        " 1 not clean, 2 no answer.",
    )
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", type=Path, help="local folder of the archive")
    add("--date", metavar="D", help="reconcile this date: YYYY-MM-DD, UTC")
    add("--follow", action="store_true", help="reconcile new files through the day, until stopped")
    add("--full", action="store_true", help="join every message, check every page and digest")
    add(
        "--strict",
        action="store_true",
        help="treat marked duplicates and late deliveries as failures",
    )
    add("--mapping", type=Path, metavar="CONFIG", help="translate the names again and compare")
    add("--master", default="local[*]", metavar="URL", help="Spark master (local[*])")
    add("--json", type=Path, metavar="FILE", help="write the summary to FILE")
    add("--output", type=Path, metavar="DIR", help="write the tables there (ARCHIVE/_reconciled)")
    add(
        "--margin-hours", type=int, default=6, metavar="H",
        help="hours to read before and after the date (6)",
    )  # fmt: skip
    add(
        "--in-flight-seconds", type=int, default=120, metavar="S",
        help="time before the last row in which a copy without outcome is in flight (120)",
    )  # fmt: skip
    add(
        "--late", type=int, default=300, metavar="S",
        help="seconds after receipt; a later delivery is late (300)",
    )  # fmt: skip
    add(
        "--every", type=float, default=15, metavar="S",
        help="--follow: seconds between two checks for new files (15)",
    )  # fmt: skip
    add("--once", action="store_true", help="--follow: reconcile the existing files, then end")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reconcile, and turn every failure into an error line and an exit status."""
    errors = Console(stderr=True)
    try:
        if args.follow:
            return run_follow(args, errors)
        report = _reconcile(args, errors)
    except (GatewayError, OSError) as fault:
        _print_error(fault, errors)
        finding = error("no-answer", str(args.archive), str(fault))
        report = Report(str(args.archive), args.date or "", [finding], answered=False)
    else:
        print_report(report, Console(file=sys.stdout))
    try:
        if args.json is not None:
            args.json.write_text(to_json(report), encoding="utf-8")
    except OSError as fault:
        _print_error(fault, errors)
        return NO_ANSWER
    return report.status


def _print_error(fault: Exception, errors: Console) -> None:
    errors.print(f"gateway reconcile: {fault}", style="red", markup=False, soft_wrap=True)


def _reconcile(args: argparse.Namespace, errors: Console) -> Report:
    if args.date is None or args.once:
        raise ReconcileError("give --date D, or --follow; --once needs --follow")
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
    with progress(errors) as show_step:
        report = reconcile(job, show_step)
    line = f"report: {job.output / REPORT_PAGE}"
    errors.print(line, highlight=False, markup=False, soft_wrap=True)
    return report


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as fault:
        raise ReconcileError(f"date {text!r}: {fault}; write YYYY-MM-DD") from fault
