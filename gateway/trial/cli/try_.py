"""`gateway try [CONFIG]`: type messages, and see what a mapping makes of them, without brokers.

It reads lines NAME PAYLOAD from standard input. A name with spaces is a JSON string. Every endpoint
of CONFIG is replaced by one in this process, with its naming rules; without CONFIG, MQTT topics
cross to five systems. It reads no secret, and uses neither the archive, spool, lease nor port of
CONFIG: all that it writes is in a temporary folder. A night keeps that folder, with its report.
Exit status: 0 the end of the input, or that of the night.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.cli.parsers import CommandParser
from gateway.clock import today
from gateway.errors import GatewayError
from gateway.logs.lines import set_up_logging
from gateway.terminal.text import print_line
from gateway.trial.first_try import running, tried


def add_options(parser: CommandParser) -> None:
    parser.add("CONFIG", "YAML file, or a folder of YAML files", nargs="?")
    text = "source of the messages (the first one with a route that takes the name)"
    parser.add("--from ENDPOINT", text, dest="endpoint")
    parser.add("--night", "reconcile the messages at the end; it needs Spark and Java")


def run(args: argparse.Namespace) -> int:
    """Show the copies of each line; exit status 0, or that of the night."""
    set_up_logging("error", "text")
    with _folder(kept=args.night) as folder:
        configuration = tried(args.config, folder, archive=args.night)
        day = today()

        def show(line: str) -> None:
            print_line(configuration.hidden.hide(line, ("routes",)))

        with running(configuration, show) as trial:
            for each in trial.sources():
                show(each)
            print_line(
                'type NAME PAYLOAD, one message a line, or "NAME WITH SPACES" PAYLOAD; Ctrl-D ends'
            )
            print(end="", flush=True)
            for line in filter(str.strip, sys.stdin):
                try:
                    trial.send(line.rstrip("\n"), args.endpoint)
                except GatewayError as error:
                    print_line(f"gateway: {error}", sys.stderr)
                print(end="", flush=True)
        if args.night:
            from gateway.cli import main  # loads Spark

            status = main(["reconcile", str(folder / "archive"), "--date", day.isoformat()])
            print_line(f"{folder} has the archive and the report; remove it afterwards", sys.stderr)
            return status
    return 0


@contextmanager
def _folder(*, kept: bool) -> Iterator[Path]:
    """Make a folder for all that the trial writes; it stays if it is `kept`."""
    if kept:
        yield Path(tempfile.mkdtemp(prefix="gateway-try-"))
        return
    with tempfile.TemporaryDirectory(prefix="gateway-try-") as folder:
        yield Path(folder)
