"""`gateway archive retire`: say that a silent writer will not return.

Exit status: 0 done, 2 not done.
"""

from __future__ import annotations

import argparse
from functools import partial

from gateway import clock
from gateway.archive.location import parse_location
from gateway.cli.archive.forget import check_folder
from gateway.cli.parsers import ARCHIVE, SEAL_KEY, Commands, add_documented, add_option, seal_key


def add_parsers(actions: Commands) -> None:
    add = partial(add_option, add_documented(actions, "retire", __doc__, run))
    add(*ARCHIVE)
    add("WRITER", "name of the writer, as the night prints it")
    add("--why TEXT", "the reason, which is kept", required=True)
    add(*SEAL_KEY)


def run(args: argparse.Namespace) -> int:
    """Write the reason and the last journal of the writer, signed."""
    from gateway.archive.retired import retire  # noqa: PLC0415  # loads PyArrow
    from gateway.archive.storage import open_storage  # noqa: PLC0415

    location = parse_location(args.archive)
    check_folder(location)
    retire(open_storage(location), args.writer, args.why, clock.now(), seal_key(args))
    print(f"{args.writer} is retired")
    return 0
