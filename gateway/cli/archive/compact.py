"""`gateway archive compact` and `forget`: the archive's nightly housekeeping, done by Spark."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console

from gateway.archive.layout import oldest_kept
from gateway.archive.location import parse_place
from gateway.cli.parsers import Commands
from gateway.clock import today
from gateway.errors import ArchiveError
from gateway.reconcile.driver import check_driver
from gateway.reconcile.findings import Finding, Weight
from gateway.reconcile.progress import progress

_LOST = ("unreadable-file", "foreign-file", "vanished-file")  # rows that are in no day table


def add_parsers(actions: Commands) -> None:
    parser = actions.add_parser(
        "compact",
        help="put the segments of a date into day tables, remove old days, list shortened names",
        description="Exit status: 0 done, 1 done and something is wrong, 2 not done.",
    )
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", type=Path, help="folder the gateway archives to")
    add("--date", metavar="D", help="YYYY-MM-DD, UTC (yesterday)")
    add("--master", default="local[*]", metavar="URL", help="Spark master (default: local[*])")
    add("--size", type=int, default=200, metavar="MB", help="of a day table, about (200)")
    add("--keep-days", type=int, metavar="N", help="remove older dates, day tables and all")
    parser.set_defaults(run=run)
    parser = actions.add_parser(
        "forget",
        help="remove old days, wherever the archive is",
        description="Exit status: 0 done, 2 not done.",
    )
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", help="folder, or URL as the gateway has it")
    add("--keep-days", type=int, metavar="N", required=True, help="whole days that stay")
    add("--master", default="local[*]", metavar="URL", help="Spark master (default: local[*])")
    parser.set_defaults(run=run_forget)


def run(args: argparse.Namespace) -> int:
    """Day tables, then old days, then the dictionary, so that it tells of days that are there."""
    day, errors = _checked(args), Console(stderr=True)
    oldest = None if args.keep_days is None else _oldest(args.keep_days)
    check_driver()
    from gateway.reconcile.maintenance.compact import Compacted, compact  # noqa: PLC0415  # the extra may be
    from gateway.reconcile.maintenance.retention import forget_days  # noqa: PLC0415
    from gateway.reconcile.maintenance.short_names_job import build  # noqa: PLC0415  # absent
    from gateway.reconcile.session import spark_session  # noqa: PLC0415

    place = parse_place(str(args.archive))
    with progress(errors) as say, spark_session(args.master) as spark:
        if oldest is not None and day < oldest:
            done = Compacted(0, 0, ())
            say(f"{day} is older than the {args.keep_days} days that are kept; not compacted")
        else:
            done = compact(args.archive, day, say, args.master, args.size)
        gone = None if oldest is None else forget_days(spark, place, oldest, say)
        names = build(spark, place, oldest, say)
    tell(done.findings, errors)
    print(f"{done.segments} segments of {day} became {len(done.tables)} day tables")
    if gone is not None:
        print(f"{len(gone.days)} older dates were removed, {gone.files} files")
    tell(names.findings, errors)
    print(f"{names.names} shortened names, {names.sent} of them sent to {names.targets} targets")
    lost = any(finding.rule in _LOST for finding in done.findings)
    return int(lost or is_wrong(names.findings))


def run_forget(args: argparse.Namespace) -> int:
    """Remove the days before the last whole ones."""
    place, oldest, errors = parse_place(args.archive), _oldest(args.keep_days), Console(stderr=True)
    if not place.url and not place.local.is_dir():
        raise ArchiveError(f"archive {args.archive!r}: is not a folder")
    check_driver()
    from gateway.reconcile.maintenance.retention import forget_days  # noqa: PLC0415  # the extra may be absent
    from gateway.reconcile.session import spark_session  # noqa: PLC0415

    with progress(errors) as say, spark_session(args.master, short=True) as spark:
        gone = forget_days(spark, place, oldest, say)
    for day in gone.days:
        print(f"{day} is removed")
    print(f"{len(gone.days)} dates were removed, {gone.files} files of {gone.size} bytes")
    return 0


def tell(findings: Iterable[Finding], errors: Console) -> None:
    for finding in findings:
        errors.print(str(finding), markup=False, highlight=False, soft_wrap=True)


def is_wrong(findings: Iterable[Finding]) -> bool:
    return any(finding.weight is Weight.ERROR for finding in findings)


def _oldest(keep_days: int) -> date:
    """The first day that stays."""
    if keep_days < 1:
        raise ArchiveError(f"--keep-days {keep_days}: is not 1 or more")
    return oldest_kept(keep_days, today())


def _checked(args: argparse.Namespace) -> date:
    if not args.archive.is_dir():
        raise ArchiveError(f"archive {str(args.archive)!r}: is not a folder")
    if args.size < 1:
        raise ArchiveError(f"--size {args.size}: is not 1 or more")
    if args.date is None:
        return today() - timedelta(days=1)
    try:
        return date.fromisoformat(args.date)
    except ValueError as fault:
        raise ArchiveError(f"date {args.date!r}: {fault}; write YYYY-MM-DD") from fault
