"""`gateway status`: the current status, once; for people, scripts and probes."""

from __future__ import annotations

import argparse
import json
import time
from typing import Final

from gateway.cli.live.client import add_arguments, client_of
from gateway.cli.parsers import Commands, add_command

MAX_ROWS: Final = 20  # endpoints, and routes, on a terminal
RATE_INTERVAL: Final = 1.0  # seconds between the two requests that a rate needs


def add_parsers(commands: Commands) -> None:
    parser = add_command(
        commands,
        "status",
        "show the status of a running gateway",
        "Exit status: 0 ready, 1 not ready, 2 no answer.",
    )
    add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the response of /api/status")
    parser.add_argument(
        "--all", action="store_true", help=f"show all rows on a terminal, not the first {MAX_ROWS}"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 ready, 1 not ready, 2 no answer."""
    client = client_of(args)
    first = client.status()
    if args.json:
        print(json.dumps(first))
        return 0 if first["ready"] else 1
    from gateway.cli.live.dashboard import Limits, dashboard  # noqa: PLC0415  # not for --json
    from gateway.terminal.console import open_console, print_lines  # noqa: PLC0415

    time.sleep(RATE_INTERVAL)
    latest = client.status()
    console = open_console()
    rows = MAX_ROWS if console.is_terminal and not args.all else None
    limits = Limits(rows, hint="; --all shows them")
    print_lines(dashboard(latest, first, console, limits), console)
    return 0 if latest["ready"] else 1
