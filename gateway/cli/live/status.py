"""`gateway status`: show the status of a running gateway.

Exit status: 0 ready, 1 not ready, 2 no answer.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, Final

from gateway.cli.live.running_gateway import add_arguments, client_of
from gateway.cli.parsers import CommandParser
from gateway.errors import NoAnswerError

if TYPE_CHECKING:
    from gateway.web.client import StatusClient
    from gateway.web.snapshot import Json

MAX_ROWS: Final = 20  # endpoints, and routes, on a terminal
WAIT_INTERVAL: Final = 0.1  # seconds between two questions to a gateway that is not ready
RATE_INTERVAL: Final = 1.0  # seconds between the two requests that a rate needs


def add_options(parser: CommandParser) -> None:
    add_arguments(parser)
    parser.add("--json", "print the response of /api/status")
    parser.add("--all", f"show all rows on a terminal, not the first {MAX_ROWS}")
    parser.add("--wait SECONDS", "wait until the gateway is ready, at most so long", 0.0)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 ready, 1 not ready, 2 no answer."""
    client, deadline = client_of(args), time.monotonic() + args.wait
    first = _status(client, deadline)
    if args.json:
        print(json.dumps(first))
        return 0 if first["ready"] else 1
    from gateway.cli.live.dashboard import dashboard  # not for --json
    from gateway.terminal.console import open_console, print_lines

    time.sleep(RATE_INTERVAL)
    latest = _status(client, deadline)
    console = open_console()
    rows = MAX_ROWS if console.is_terminal and not args.all else None
    print_lines(dashboard(latest, first, console, rows=rows), console)
    return 0 if latest["ready"] else 1


def _status(client: StatusClient, deadline: float) -> Json:
    """Return the status as soon as the gateway is ready, or that at the deadline.

    Raises:
        WebError: it does not answer, or needs another token.
    """
    while True:
        try:
            found = client.status()
        except NoAnswerError:
            if time.monotonic() >= deadline:
                raise
        else:
            if found["ready"] or time.monotonic() >= deadline:
                return found
        time.sleep(WAIT_INTERVAL)
