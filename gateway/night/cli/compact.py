"""`gateway archive compact`: merge the segments of each hour of a date, and remove old days.

Every segment is compared with its seal; one that differs stays. Shortened names are added to their
dictionary. Exit status: 0 done, 1 done with errors in files or names, 2 not done.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from rich.console import Console

from gateway.archive.findings import Finding, Weight
from gateway.cli.parsers import ARCHIVE, JSON_RESULT, MASTER, SEAL_KEY, CommandParser, seal_key
from gateway.clock import today
from gateway.errors import ArchiveError
from gateway.night.cli.arguments import named_storage, parse_date, written_location
from gateway.night.cli.forget import first_kept_day, remove_old_days
from gateway.night.reconcile.spark_requirements import check_driver
from gateway.terminal.console import open_console
from gateway.terminal.progress import progress
from gateway.terminal.text import visible
from gateway.terminal.units import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gateway.night.reconcile.maintenance.dictionary import ShortNameReport


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    parser.add("--date D", "date: YYYY-MM-DD, UTC (yesterday)")
    parser.add(*MASTER)
    parser.add("--size MB", "approximate size of a merged segment", 200)
    parser.add(*JSON_RESULT)
    parser.add("--keep-days N", "remove days older than the last N whole days")
    parser.add(*SEAL_KEY)


def run(args: argparse.Namespace) -> int:
    """Merge segments, remove old days, then build the dictionary from the kept days."""
    errors = open_console(stderr=True)
    if args.size < 1:
        raise ArchiveError(f"--size {args.size}: is not 1 or more")
    day = parse_date(args.date) or today() - timedelta(days=1)
    key = seal_key(args)
    oldest = None if args.keep_days is None else first_kept_day(args.keep_days)
    location = written_location(args.archive)
    check_driver()
    from gateway.night.archive.compaction.compact_day import CompactionReport  # Arrow
    from gateway.night.reconcile.maintenance.compact import compact  # may be absent
    from gateway.night.reconcile.maintenance.dictionary import (
        build_dictionary,
        report_of_current,
    )
    from gateway.night.reconcile.nights.marker import mark
    from gateway.night.reconcile.session import spark_session

    with progress(errors) as show_step, ExitStack() as stack:

        @cache
        def start_spark() -> SparkSession:
            show_step(f"starting Spark on {args.master}")
            return stack.enter_context(spark_session(args.master))

        if oldest is not None and day < oldest:
            compacted = CompactionReport()
            show_step(f"{day} is older than the {args.keep_days} days to keep; not compacted")
        else:
            compacted = compact(start_spark, location, day, show_step, key=key, size=args.size)
        removed = None
        if oldest is not None:
            show_step(f"removing days before {oldest}")
            removed = remove_old_days(args.archive, oldest, key)
        names = report_of_current(location, oldest)
        if names is None:
            names = build_dictionary(location, oldest, show_step)
    with named_storage(args.archive) as storage:
        marker = mark(storage, day)
    findings = (*compacted.findings, *names.findings)
    status = print_findings(findings, errors)
    if args.json:
        facts = {
            "date": str(day),
            **{name: getattr(compacted, name) for name in ("segments", "rows", "merged")},
            "removed": removed and {"dates": list(map(str, removed.days)), "files": removed.files},
            "done": marker and marker.as_posix(),
            "names": names_facts(names),
        }
        print_json(facts, findings)
        return status
    merged = counted(len(compacted.merged), "merged segment")
    print(f"{counted(compacted.segments, 'segment')} of {day} became {merged}")
    if removed is not None:
        print(
            f"removed: {counted(len(removed.days), 'older date')}, {counted(removed.files, 'file')}"
        )
    print_names(names)
    if marker is not None:
        print(f"{day} is judged and merged: {marker}")
    return status


def print_names(names: ShortNameReport) -> None:
    sent = f"{names.sent:,} of them sent to {counted(names.targets, 'target')}"
    print(f"{counted(names.names, 'shortened name')}, {sent}")


def names_facts(names: ShortNameReport) -> dict[str, int]:
    return {name: getattr(names, name) for name in ("names", "sent", "targets")}


def print_json(facts: Mapping[str, object], findings: Sequence[Finding]) -> None:
    """Print a result with its findings as one JSON object; docs/archive.md has its keys."""
    print(json.dumps({"version": 1, **facts, "findings": list(map(asdict, findings))}))


def print_findings(findings: Sequence[Finding], errors: Console) -> int:
    """Print findings; return the exit status, 1 with an error among them."""
    for finding in findings:
        errors.print(visible(str(finding)), soft_wrap=True)
    return int(any(finding.weight is Weight.ERROR for finding in findings))
