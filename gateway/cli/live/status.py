"""`gateway status`: what a running gateway does now, once; for people, scripts and probes."""

from __future__ import annotations

import argparse
import json
import time
from typing import Final

from gateway.cli.live.client import add_arguments, client_of
from gateway.cli.parsers import Commands

BETWEEN: Final = 1.0  # seconds between the two looks that a rate needs


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("status", help="what a running gateway does; 1 when not ready")
    add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the answer of /api/status as it is")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 ready, 1 not ready, 2 no answer."""
    client = client_of(args)
    found = client.status()
    if args.json:
        print(json.dumps(found))
        return 0 if found["ready"] else 1
    from rich.console import Console  # noqa: PLC0415  # only people need it

    from gateway.cli.live.dashboard import dashboard  # noqa: PLC0415

    time.sleep(BETWEEN)
    latest = client.status()
    Console().print(dashboard(latest, found))
    return 0 if latest["ready"] else 1
