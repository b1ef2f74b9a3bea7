"""`gateway archive names`: make the dictionary of shortened names, or look one up in it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rich.console import Console

from gateway.archive.location import Place, parse_place
from gateway.cli.archive.compact import is_wrong, tell
from gateway.cli.parsers import Commands
from gateway.errors import ArchiveError
from gateway.reconcile.driver import check_driver
from gateway.reconcile.progress import progress

if TYPE_CHECKING:
    from gateway.archive.lookup.name_lookup import Entry


def add_parsers(actions: Commands) -> None:
    parser = actions.add_parser(
        "names",
        help="list what shortened names stand for, or look one up",
        description="Exit status: 0 done or found, 1 something is wrong or not found, 2 not done.",
    )
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", help="folder, or URL as the gateway has it")
    add("--find", metavar="NAME", help="short, whole, or as it came; reads what was made before")
    add("--master", default="local[*]", metavar="URL", help="Spark master (default: local[*])")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    place = parse_place(args.archive)
    if not place.url and not place.local.is_dir():
        raise ArchiveError(f"archive {args.archive!r}: is not a folder")
    return _make(place, args.master) if args.find is None else _find(place, args.find)


def _make(place: Place, master: str) -> int:
    errors = Console(stderr=True)
    check_driver()
    from gateway.reconcile.maintenance.short_names_job import build  # noqa: PLC0415  # the extra may be absent
    from gateway.reconcile.session import spark_session  # noqa: PLC0415

    with progress(errors) as say, spark_session(master, short=True) as spark:
        made = build(spark, place, None, say)
    tell(made.findings, errors)
    print(f"{made.names} shortened names, {made.sent} of them sent to {made.targets} targets")
    return int(is_wrong(made.findings))


def _find(place: Place, name: str) -> int:
    from gateway.archive.lookup.name_lookup import find  # noqa: PLC0415  # only here PyArrow is loaded
    from gateway.archive.storage import open_store  # noqa: PLC0415

    found = 0
    for entry in find(open_store(place), name):
        found += 1
        print("\n".join(_told(entry)))
    if not found:
        print(f"{name}: is not in the dictionary")
    return int(not found)


def _told(entry: Entry) -> list[str]:
    """An entry for a person to read; a name may hold what a terminal should not see raw."""
    where = f"{entry.target} ({entry.system})" if entry.target else "never sent"
    whole = entry.whole if entry.whole is not None else _levels(entry)
    lines = [f"{entry.name}", f"  stands for  {whole}", f"  at          {where}"]
    lines += [f"  came as     {source}" for source in entry.sources if source]
    if entry.first_time is not None and entry.last_time is not None:
        first, last = (f"{at:%Y-%m-%d %H:%M:%S}" for at in (entry.first_time, entry.last_time))
        lines.append(f"  sent        {entry.count} times, {first} to {last} UTC")
    lines.append(f"  by          {', '.join(entry.gateways)}")
    return [_plain(line) for line in lines]


def _levels(entry: Entry) -> str:
    return "a name that nobody remembers" if entry.levels is None else "/".join(entry.levels)


def _plain(line: str) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in line
    )
