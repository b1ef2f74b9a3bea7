"""`gateway archive generate`: generate a day of synthetic traffic with known faults.

ARCHIVE/_generated/faults.json lists the faults.
"""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path
from typing import Final

from gateway.cli.parsers import SEAL_KEY, CommandParser, options_of, seal_key
from gateway.clock import today
from gateway.errors import ArchiveError
from gateway.night.cli.arguments import parse_date
from gateway.terminal.console import open_console
from gateway.terminal.progress import progress
from gateway.terminal.units import counted

_MAX_CLOCK_SKEW: Final = 3_600  # seconds, of all gateways together


def add_options(parser: CommandParser) -> None:
    parser.add("ARCHIVE", "folder of the new archive", type=Path)
    parser.add("--messages N", "number of received messages", required=True)
    parser.add("--faults LIST", "faults, such as loss=1e-6,dead=3; a number below 1 is a share", "")
    parser.add("--fault-minutes N", "minutes with faults (any)", 0)
    parser.add("--routes K", "number of routes", 4)
    parser.add("--names N", "number of distinct names", 1_000)
    parser.add("--skew S", "share of the first route", 0.9)
    parser.add("--gateways G", "number of gateways", 1)
    parser.add("--clock-skew S", "seconds between their clocks (0)", 0)
    parser.add("--date D", "date: YYYY-MM-DD, UTC (yesterday)")
    parser.add("--seed S", "seed of the random numbers", 1)
    parser.add("--segment N", "messages per journal", 100_000)
    parser.add("--observed", "write rows of a tap at each target, too")
    parser.add(*SEAL_KEY)


def run(args: argparse.Namespace) -> int:
    from gateway.trial.synthetic.fault_manifest import MANIFEST
    from gateway.trial.synthetic.faults import parse_faults  # loads NumPy and Arrow
    from gateway.trial.synthetic.generate_archive import generate
    from gateway.trial.synthetic.traffic import Traffic

    _check(args)
    day = parse_date(args.date) or today() - timedelta(days=1)
    traffic = options_of(Traffic, args, day=day)
    counts = parse_faults(args.faults, args.messages)
    with progress(open_console(stderr=True), steps=False) as show_step:
        try:
            injected = generate(
                args.archive,
                traffic,
                counts,
                fault_minutes=args.fault_minutes,
                segment=args.segment,
                key=seal_key(args),
                show_step=show_step,
            )
        except OSError as error:
            raise ArchiveError(f"archive {args.archive}: cannot be written: {error}") from error
    print(
        f"{counted(args.messages, 'message')} of {traffic.day}, {counted(len(injected), 'fault')}"
    )
    print(f"list of the faults: {args.archive / MANIFEST}")
    return 0


def _check(args: argparse.Namespace) -> None:
    for name in ("messages", "routes", "names", "gateways", "segment"):
        if getattr(args, name) < 1:
            raise ArchiveError(f"--{name} {getattr(args, name)}: is not 1 or more")
    if args.names < args.routes:
        raise ArchiveError(f"--names {args.names}: each of {args.routes} routes needs one")
    if not 0 <= args.skew <= 1:
        raise ArchiveError(f"--skew {args.skew}: is not a share from 0 to 1")
    if not 0 <= args.clock_skew <= _MAX_CLOCK_SKEW // max(args.gateways - 1, 1):
        text = "is not 0 to an hour for all gateways together"
        raise ArchiveError(f"--clock-skew {args.clock_skew}: {text}")
    if args.fault_minutes < 0 or args.seed < 0:
        raise ArchiveError("--fault-minutes and --seed are 0 or more")
