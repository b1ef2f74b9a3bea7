"""`gateway archive retire`: say that a silent writer will not return.

Exit status: 0 done, 2 not done.
"""

from __future__ import annotations

import argparse

from gateway import clock
from gateway.archive.location import parse_location
from gateway.cli.archive.forget import check_folder
from gateway.cli.parsers import Commands, add_documented, add_seal_key, seal_key


def add_parsers(actions: Commands) -> None:
    parser = add_documented(actions, "retire", __doc__)
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", help="folder or URL of the archive, as in the configuration")
    add("writer", metavar="WRITER", help="name of the writer, as the night prints it")
    add("--why", metavar="TEXT", required=True, help="the reason, which is kept")
    add_seal_key(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the reason and the last journal of the writer, signed."""
    from gateway.archive.retired import retire  # noqa: PLC0415  # loads PyArrow
    from gateway.archive.storage import open_storage  # noqa: PLC0415

    location = parse_location(args.archive)
    check_folder(location)
    retire(open_storage(location), args.writer, args.why, clock.now(), seal_key(args))
    print(f"{args.writer} is retired")
    return 0
