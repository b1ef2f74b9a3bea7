"""`gateway archive`: verify or compact an archive, show messages and names, or generate one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.cli.parsers import CommandParser, add_modules

ACTIONS: Final[Mapping[str, str]] = {
    "generate": "gateway.trial.cli.generate",  # by name: a night imports nothing of a trial
    **{
        name: f"gateway.night.cli.{name}"
        for name in ("compact", "forget", "retire", "acknowledge", "names", "verify", "show")
    },
}


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    add_modules(actions, ACTIONS)
