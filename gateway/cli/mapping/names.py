"""`gateway names`: answer queries about names, one JSON object per line.

Queries are read from standard input; docs/names.md lists them.
"""

from __future__ import annotations

import argparse
import sys

from gateway.cli.mapping.name_requests import answer_line
from gateway.cli.parsers import CommandParser


def add_options(_: CommandParser) -> None:
    """It has none."""


def run(_: argparse.Namespace) -> int:
    """Answer each line of standard input, in order, to its end."""
    for line in sys.stdin.buffer:
        print(answer_line(line), flush=True)
    return 0
