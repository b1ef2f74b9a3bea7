"""`gateway archive acknowledge`: say that a finding of the last night is known, and stays.

It stays listed, and the exit status of later nights counts the others. Exit status: 0 done, 2 not
done.
"""

from __future__ import annotations

import argparse

from gateway import clock
from gateway.cli.parsers import ARCHIVE, SEAL_KEY, CommandParser, seal_key
from gateway.night.cli.arguments import named_storage
from gateway.terminal.text import print_line


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    parser.add("RULE", "rule of the finding, as the night prints it in brackets")
    parser.add("PLACE", "its place, before the text")
    parser.add("--why TEXT", "the reason, which is kept", required=True)
    parser.add(*SEAL_KEY)


def run(args: argparse.Namespace) -> int:
    """Write the reason for each finding of this rule and place, signed."""
    from gateway.night.archive.acknowledged import acknowledge  # loads PyArrow

    key = seal_key(args)
    with named_storage(args.archive, "is not changed") as storage:
        found = acknowledge(storage, args.rule, args.place, args.why, clock.now(), key)
    for each in found:
        print_line(f"acknowledged: {each}")
    return 0
