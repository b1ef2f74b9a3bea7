"""`gateway reconcile`: reconcile the closed days that are new or changed, or given ones.

Finds lost, late, altered, reordered and duplicated messages. Exit status: 0 clean, 1 not clean, 2
no answer, 3 clean for what was received, with gaps of a source or cuts on another's word.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from datetime import date, timedelta
from time import monotonic
from traceback import format_exc

from rich.console import Console

from gateway import clock
from gateway.archive.findings import error
from gateway.archive.layout import SPOOLED_DAYS
from gateway.cli.parsers import ARCHIVE, MASTER, SEAL_KEY, CommandParser, options_of, seal_key
from gateway.config.load import load
from gateway.errors import ArchiveError, GatewayError, ReconcileError
from gateway.night.cli.arguments import named_location, parse_date, written_location
from gateway.night.cli.follow import run_follow
from gateway.night.reconcile.report.metrics import write_metrics
from gateway.night.reconcile.report.report import NO_ANSWER, Report
from gateway.night.reconcile.report.run import Run, run_json
from gateway.night.reconcile.report.terminal import print_report
from gateway.night.reconcile.spark_requirements import check_driver
from gateway.routing.name_rules import to_rules
from gateway.terminal.console import open_console, whether_read_or_not
from gateway.terminal.progress import progress
from gateway.terminal.text import visible_lines


def add_options(parser: CommandParser) -> None:
    add_mode = parser.add_mutually_exclusive_group().add_argument
    parser.add(*ARCHIVE)
    parser.add("--date D", "reconcile this date only: YYYY-MM-DD, UTC")
    parser.add("--from D", "reconcile all dates from this one", dest="first")
    parser.add("--to D", "reconcile all dates up to this one", dest="last")
    text = "the digest that an earlier night printed; none in the archive: it was rolled back"
    parser.add("--expect DIGEST", text)
    parser.add("--follow", "reconcile new files through the day, until stopped")
    text = "join every message (default below 200,000 copies)"
    add_mode("--full", action="store_const", const=True, help=text)
    text = "join only messages that id sets do not prove (default above)"
    add_mode("--sets", action="store_const", const=False, dest="full", help=text)
    parser.add("--hops", "judge the messages between the gateways, too")
    parser.add("--strict", "treat marked duplicates and late deliveries as failures")
    parser.add("--accept-gaps", "exit status 0 despite gaps of a source")
    parser.add("--accept-cuts", "exit status 0 despite messages cut on another's word")
    parser.add(*SEAL_KEY)
    parser.add("--mapping CONFIG", "check names by the routes of CONFIG, not by the archived ones")
    parser.add(*MASTER)
    parser.add("--json FILE", "write the summary to FILE")
    text = "write the verdict to FILE for Prometheus's node exporter (FILE.prom)"
    parser.add("--metrics FILE", text)
    parser.add("--output DIR", "write the tables there (ARCHIVE/_reconciled)")
    text = "time before a gateway's open journal in which its messages may be in flight"
    parser.add("--in-flight-seconds S", text, 120, dest="in_flight")
    text = "days after which a spooled message without an outcome is missing"
    parser.add("--spooled-days N", text, SPOOLED_DAYS)
    parser.add("--late S", "seconds after receipt; a later delivery is late", 300)
    parser.add("--every S", "--follow: seconds between two checks for new files", 15.0)
    parser.add("--once", "--follow: reconcile the existing files, then end")


def run(args: argparse.Namespace) -> int:
    """Reconcile, and turn every failure into an error line and an exit status.

    A failure is written to the files of `--json` and `--metrics` too, so that no earlier verdict
    stays in them.
    """
    errors = open_console(stderr=True)
    began = monotonic()
    failed = True
    try:
        if args.follow:
            return run_follow(args, errors)
        run = _reconcile(args, errors)
    except (GatewayError, OSError) as fault:
        run = _without_answer(args, str(fault), errors)
    except Exception as fault:  # noqa: BLE001  # a fault of the gateway
        errors.print(visible_lines(format_exc()), soft_wrap=True)
        text = f"a fault of the gateway; report it: {type(fault).__name__}: {fault}"
        run = _without_answer(args, text, errors)
    else:
        failed = False
    written = _write_files(args, run, monotonic() - began, errors)
    if not failed:
        with whether_read_or_not():
            print_report(run, open_console())
    return run.exit_status if written else NO_ANSWER


def _without_answer(args: argparse.Namespace, text: str, errors: Console) -> Run:
    """Print why there is no answer, and return the run that says so."""
    _print_error(text, errors)
    finding = error("no-answer", str(args.archive), text)
    day = None
    with suppress(ArchiveError):
        day = parse_date(args.date)
    return Run(Report(str(args.archive), day, [finding], answered=False))


def _write_files(args: argparse.Namespace, run: Run, seconds: float, errors: Console) -> bool:
    """Write the files of `--json` and `--metrics`, each also when the other cannot be written.

    Return whether both are written.
    """
    faults = []
    for path, write in (
        (args.metrics, lambda path: write_metrics(run, path, clock.now(), seconds)),
        (args.json, lambda path: path.write_text(run_json(run), encoding="utf-8")),
    ):
        try:
            if path is not None:
                write(path)
        except OSError as fault:
            faults.append(fault)
            _print_error(str(fault), errors)
    return not faults


def _print_error(text: str, errors: Console) -> None:
    errors.print(visible_lines(f"gateway reconcile: {text}"), style="red", soft_wrap=True)


def _reconcile(args: argparse.Namespace, errors: Console) -> Run:
    if args.once:
        raise ReconcileError("--once needs --follow")
    days = _days(args)
    if args.expect is not None and (days or args.output is not None):
        raise ReconcileError("--expect needs a run without dates and --output")
    if min(args.in_flight, args.late, args.spooled_days) < 0:
        raise ReconcileError("--in-flight-seconds, --late and --spooled-days are 0 or more")
    (written_location if days else named_location)(args.archive)
    check_driver()
    from gateway.night.archive.open_archive import open_archive  # loads PyArrow
    from gateway.night.reconcile.job import Job  # the extra may be absent
    from gateway.night.reconcile.nights.run import closed_dates, run_dates, run_night
    from gateway.night.reconcile.report.result_folder import results_of

    archive = open_archive(args.archive, seal_key(args))
    mapping = None if args.mapping is None else to_rules(load(args.mapping).routes)
    job = options_of(Job, args, mapping=mapping)
    with progress(errors) as show_step:
        if not days and args.output is None:
            night = run_night(archive, job, show_step, args.expect)
            run, digest = night.run, night.link.mac
        else:
            days = days or closed_dates(archive, clock.today())
            if not days:
                raise ReconcileError("the archive has no closed date; give --date D")
            run, digest = Run(run_dates(archive, job, days, show_step)), ""
    day = run.report.day
    page = "" if day is None else results_of(archive, day, job.output).page
    lines = [f"report: {page}"] if page else []
    for line in lines + ([f"night: {digest}"] if digest else []):
        errors.print(line, soft_wrap=True)
    return run


def _days(args: argparse.Namespace) -> list[date]:
    """Return the dates that the options name; none for the next night."""
    if args.date is not None and (args.first or args.last):
        raise ReconcileError("give --date D, or --from D --to D")
    if (day := parse_date(args.date)) is not None:
        return [day]
    if (args.first is None) != (args.last is None):
        raise ReconcileError("--from D and --to D belong together")
    first, last = parse_date(args.first), parse_date(args.last)
    if first is None or last is None:
        return []
    if last < first:
        raise ReconcileError(f"--to {last} is before --from {first}")
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]
