"""`gateway top`: a running gateway on the terminal, live, the busiest routes first."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.cli.live.client import add_arguments, client_of
from gateway.cli.parsers import Commands
from gateway.errors import WebError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from gateway.web.client import Client


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("top", help="a running gateway on the terminal, live")
    add_arguments(parser)
    parser.add_argument(
        "--seconds", type=float, default=1.0, metavar="S", help="between two looks (1)"
    )
    parser.add_argument(
        "--count", type=int, default=0, metavar="N", help="end after N looks; 0 never does (0)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs until Ctrl-C; a gateway that is away is shown as such, and asked again."""
    from rich.console import Console  # noqa: PLC0415  # `gateway run` needs no rich
    from rich.live import Live  # noqa: PLC0415

    console = Console()
    client = client_of(args)
    frames = _frames(client, console, max(0.1, args.seconds), args.count)
    if not console.is_terminal:
        for frame in frames:
            console.print(frame)
        return 0
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for frame in frames:
            live.update(frame, refresh=True)
    return 0


def _frames(
    client: Client, console: Console, seconds: float, count: int
) -> Iterator[RenderableType]:
    from gateway.cli.live.dashboard import dashboard, lost  # noqa: PLC0415  # as above

    before = None
    turn = 0
    while True:
        try:
            found = client.status()
            height = console.height if console.is_terminal else None
            yield dashboard(found, before, height)
            before = found
        except WebError as error:
            yield lost(str(error))
        turn += 1
        if turn == count:
            return
        time.sleep(seconds)
