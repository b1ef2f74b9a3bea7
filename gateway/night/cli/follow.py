"""`gateway reconcile --follow`: reconcile through the day, until it is stopped."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rich.console import Console

from gateway.archive.layout import followed_folder
from gateway.archive.location import parse_location
from gateway.cli.live.signals import stop_signals
from gateway.cli.parsers import options_of
from gateway.errors import ReconcileError
from gateway.night.cli.arguments import named_location
from gateway.night.reconcile.report.headline import arrivals
from gateway.night.reconcile.report.report import CLEAN, GAPS
from gateway.night.reconcile.spark_requirements import check_driver
from gateway.terminal.console import open_console, whether_read_or_not
from gateway.terminal.progress import progress
from gateway.terminal.text import visible

if TYPE_CHECKING:
    from gateway.night.reconcile.follow.follow import Follower


def run_follow(args: argparse.Namespace, errors: Console) -> int:
    """Follow the archive until a signal, or with `--once` to its end; return the exit status.

    Raises:
        GatewayError: an argument is wrong, or Spark failed.
        OSError: a folder cannot be written.
    """
    _check(args)
    check_driver()
    from gateway.night.reconcile.follow.day import FollowOptions
    from gateway.night.reconcile.follow.follow import Follower, follow  # the extra may be absent

    root = parse_location(args.archive).local
    default = followed_folder(root)
    output = default if args.output is None else args.output / default.name
    options = options_of(FollowOptions, args, root=root, output=output)
    out = open_console()

    def print_line(line: str) -> None:
        with whether_read_or_not():
            out.print(visible(line), soft_wrap=True)

    with progress(errors) as show_step, stop_signals() as stopping:
        follower = Follower(options, show_step, print_line)
        follow(follower, stopping)
    with whether_read_or_not():
        _print_verdicts(follower, out)
    if args.json is not None:
        args.json.write_text(follower.summary(), encoding="utf-8")
    return follower.status()


def _check(args: argparse.Namespace) -> None:
    if named_location(args.archive).url:
        raise ReconcileError(f"archive {args.archive!r}: --follow needs a local folder")
    usual = args.command_parser.get_default("in_flight")
    nightly = {
        "--date": args.date,
        "--from": args.first,
        "--to": args.last,
        "--expect": args.expect,
        "--full": args.full,
        "--sets": args.full is False,
        "--mapping": args.mapping,
        "--hops": args.hops,
        "--accept-gaps": args.accept_gaps,
        "--accept-cuts": args.accept_cuts,
        "--metrics": args.metrics,
        "--seal-key": args.seal_key,
        "--in-flight-seconds": args.in_flight != usual,
    }
    if wrong := [name for name, value in nightly.items() if value]:
        raise ReconcileError(f"{', '.join(wrong)}: is for the nightly run; omit it, or --follow")
    if min(args.late, args.spooled_days) < 0 or args.every <= 0:
        raise ReconcileError("--late and --spooled-days are 0 or more, --every is more than 0")


def _print_verdicts(follower: Follower, out: Console) -> None:
    """Print a line for each date, the newest last."""
    reports = follower.reports()
    for report in reports:
        arrived = f" ({arrivals(report)})" if report.status in (CLEAN, GAPS) else ""
        out.print(f"{report.day}: {report.verdict}{arrived}", soft_wrap=True)
    if not reports:
        out.print("no answer: the archive has no segment yet")
