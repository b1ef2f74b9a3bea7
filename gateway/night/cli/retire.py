"""`gateway archive retire`: say that a silent writer will not return.

Exit status: 0 done, 2 not done.
"""

from __future__ import annotations

import argparse

from gateway import clock
from gateway.cli.parsers import ARCHIVE, SEAL_KEY, CommandParser, seal_key
from gateway.night.cli.arguments import named_storage


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    parser.add("WRITER", "name of the writer, as the night prints it")
    parser.add("--why TEXT", "the reason, which is kept", required=True)
    parser.add(*SEAL_KEY)


def run(args: argparse.Namespace) -> int:
    """Write the reason and the last journal of the writer, signed."""
    from gateway.night.archive.retired import retire  # loads PyArrow

    with named_storage(args.archive, "is not changed") as storage:
        retire(storage, args.writer, args.why, clock.now(), seal_key(args))
    print(f"{args.writer} is retired")
    return 0
