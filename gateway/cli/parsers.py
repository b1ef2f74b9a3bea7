"""Adds commands to the `gateway` command, with help texts of one form."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001  # no public name
else:
    Commands = object


def add_command(
    commands: Commands, name: str, summary: str, details: str = ""
) -> argparse.ArgumentParser:
    """Add a command and return its parser.

    `summary` is an imperative in lower case without a full stop: the command's line in the list of
    commands, and the first sentence of its own help. `details` are further sentences.
    """
    sentence = f"{summary[:1].upper()}{summary[1:]}."
    return commands.add_parser(name, help=summary, description=f"{sentence} {details}".rstrip())
