"""`gateway top`: show live status of a running gateway.

Routes in trouble come first, then the busiest. Exit status: 0 ended, 1 no answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from gateway.cli.live.running_gateway import add_arguments, client_of
from gateway.cli.parsers import CommandParser
from gateway.errors import WebError
from gateway.terminal.text import print_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from gateway.web.client import StatusClient


def add_options(parser: CommandParser) -> None:
    add_arguments(parser)
    parser.add("--seconds S", "seconds between two updates", 1.0)
    parser.add("--count N", "end after N updates; 0 never ends (0)", 0)


def run(args: argparse.Namespace) -> int:
    """Update until Ctrl-C; a gateway that stops answering is shown as such and tried again.

    Exit status: 1 if the first request has no answer.
    """
    from rich.console import Group  # only this command needs it
    from rich.live import Live

    from gateway.terminal.console import open_console, print_lines

    console = open_console()
    frames = _frames(client_of(args), console, max(0.1, args.seconds), args.count)
    try:
        first = next(frames)
    except WebError as error:
        print_line(f"gateway: {error}", sys.stderr)
        return 1
    if not console.is_interactive:
        for frame in chain([first], frames):
            print_lines(frame, console)
        return 0
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for frame in chain([first], frames):
            live.update(Group(*frame), refresh=True)
    return 0


def _frames(
    client: StatusClient, console: Console, seconds: float, count: int
) -> Iterator[list[Text]]:
    """Yield the lines of each update.

    Raises:
        WebError: the first request has no answer.
    """
    from gateway.cli.live.dashboard import dashboard, unreachable  # as above

    status, before, updates = client.status(), None, 0
    lines: list[Text] | None = None
    while True:
        height = console.height if console.is_interactive else None
        yield lines or dashboard(status, before, console, height=height)
        updates += 1
        if updates == count:
            return
        time.sleep(seconds)
        try:
            status, before, lines = client.status(), status, None
        except WebError as error:
            lines = [unreachable(str(error))]
