"""`gateway archive compact`: many small segments of a date become few day tables."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from rich.console import Console

from gateway.cli.parsers import Commands
from gateway.errors import ArchiveError
from gateway.reconcile.driver import check_driver
from gateway.reconcile.progress import progress


def add_parsers(actions: Commands) -> None:
    parser = actions.add_parser(
        "compact",
        help="put the segments of a date into day tables",
        description="Exit status: 0 done, 1 some segments could not be read, 2 nothing was done.",
    )
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", type=Path, help="folder the gateway archives to")
    add("--date", metavar="D", help="YYYY-MM-DD, UTC (yesterday)")
    add("--master", default="local[*]", metavar="URL", help="Spark master (default: local[*])")
    add("--size", type=int, default=200, metavar="MB", help="of a day table, about (200)")
    add("--keep-days", type=int, metavar="N", help="remove older dates, day tables and all")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    day, errors = _checked(args), Console(stderr=True)
    check_driver()
    from gateway.reconcile.compact import compact  # noqa: PLC0415  # the extra may be absent

    with progress(errors) as say:
        done = compact(args.archive, day, say, args.master, args.size)
    for finding in done.findings:
        errors.print(str(finding), markup=False, soft_wrap=True)
    print(f"{done.segments} segments of {day} became {len(done.tables)} day tables")
    if args.keep_days is not None:
        from gateway.archive.retention import forget  # noqa: PLC0415  # only here PyArrow is loaded
        from gateway.archive.stores import Here  # noqa: PLC0415

        gone = forget(Here(args.archive), args.keep_days, datetime.now(UTC).date())
        print(f"{len(gone)} older dates were removed")
    unread = {"unreadable-file", "foreign-file"}
    return int(any(finding.rule in unread for finding in done.findings))


def _checked(args: argparse.Namespace) -> date:
    if not args.archive.is_dir():
        raise ArchiveError(f"archive {str(args.archive)!r}: is not a folder")
    if args.size < 1:
        raise ArchiveError(f"--size {args.size}: is not 1 or more")
    if args.keep_days is not None and args.keep_days < 1:
        raise ArchiveError(f"--keep-days {args.keep_days}: is not 1 or more")
    if args.date is None:
        return datetime.now(UTC).date() - timedelta(days=1)
    try:
        return date.fromisoformat(args.date)
    except ValueError as fault:
        raise ArchiveError(f"date {args.date!r}: {fault}; write YYYY-MM-DD") from fault
