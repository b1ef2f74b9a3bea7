"""`gateway archive`: verify or compact an archive, show messages and names, or generate one."""

from __future__ import annotations

from typing import Final

from gateway.cli.parsers import CommandParser, add_modules

ACTIONS: Final = (
    "generate", "compact", "forget", "retire", "acknowledge", "names", "verify", "show",
)  # fmt: skip


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    add_modules(actions, {name: f"archive.{name}" for name in ACTIONS})
