"""`gateway top`: live status on the terminal, busiest routes first."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.cli.live.client import add_arguments, client_of
from gateway.cli.parsers import Commands, add_command
from gateway.errors import WebError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from gateway.web.client import StatusClient


def add_parsers(commands: Commands) -> None:
    parser = add_command(commands, "top", "show live status of a running gateway")
    add_arguments(parser)
    parser.add_argument(
        "--seconds", type=float, default=1.0, metavar="S", help="seconds between two updates (1)"
    )
    parser.add_argument(
        "--count", type=int, default=0, metavar="N", help="end after N updates; 0 never ends (0)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Update until Ctrl-C; an unreachable gateway is shown as such and tried again."""
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
    client: StatusClient, console: Console, seconds: float, count: int
) -> Iterator[RenderableType]:
    from gateway.cli.live.dashboard import dashboard, unreachable  # noqa: PLC0415  # as above

    before = None
    updates = 0
    while True:
        try:
            status = client.status()
            height = console.height if console.is_terminal else None
            yield dashboard(status, before, height)
            before = status
        except WebError as error:
            yield unreachable(str(error))
        updates += 1
        if updates == count:
            return
        time.sleep(seconds)
