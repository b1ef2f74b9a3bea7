"""`gateway archive show`: print the path of a message over all gateways of the archive, row by row.

Its last lines are the targets whose copies do not carry the id, where other gateways may read on.
With --name it lists the ids of the messages with that name, the newest last. All dates are
searched. Exit status: 0 found, 1 not found, 2 not searched.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from gateway.archive.layout import is_instance, journals
from gateway.archive.routes import RoutesFile, Rules, read_routes, routes_files
from gateway.archive.schema import Leg
from gateway.cli.parsers import ARCHIVE, CommandParser
from gateway.clock import microseconds
from gateway.errors import ArchiveError
from gateway.night.cli.arguments import check_written, named_location, named_storage, parse_date
from gateway.routing.name_rules import to_routes
from gateway.terminal.text import shortened
from gateway.untyped import Untyped

if TYPE_CHECKING:  # both load PyArrow
    from gateway.archive.storage import Storage
    from gateway.night.archive.lookup.row_files import Row

_HEADLINE: Final = ("time", "gateway", "route", "leg", "target")  # shown in the first line of a row
_HEXADECIMAL: Final = ("id", "trace", "hash")
MAX_NAMED: Final = 50  # rows of a name
_MAX_VALUE: Final = 2_000  # characters
_ENDS: Final = (
    "The path ends at targets without `add_message_id`. At a gateway behind them the message has"
    " another id:"
)


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    text = "id or trace id in 32 hexadecimal digits, or the id that a source gave it"
    parser.add("ID", text, nargs="?")
    text = f"in place of ID: list the newest {MAX_NAMED} rows with this name, at a source or target"
    parser.add("--name NAME", text)
    parser.add("--date D", "search this date and the ones beside it: YYYY-MM-DD, UTC")
    parser.add("--json", "print a JSON object for each row")


def run(args: argparse.Namespace) -> int:
    """Print the rows; exit status 1 when there are none.

    Raises:
        ArchiveError: the archive cannot be read, or there is neither an id nor a name.
    """
    from gateway.night.archive.lookup.message import message_rows, named_rows  # loads PyArrow

    if (args.id is None) == (args.name is None):
        raise ArchiveError("archive show: give an ID, or --name NAME")
    day = parse_date(args.date)
    with named_storage(args.archive) as storage:
        check_written(args.archive, storage)
        if args.id is None:
            found = named_rows(storage, args.name, day)
            rows = nlargest(MAX_NAMED, found, key=itemgetter("time"))
        else:
            rows = list(message_rows(storage, args.id, day))
        ends = [] if args.id is None or args.json else _ends(storage, rows)
    for row in sorted(rows, key=itemgetter("time")):
        values = {
            name: _shown(name, value) for name, value in row.items() if value not in (None, "", [])
        }
        if args.json:
            print(json.dumps(values))
            continue
        texts = {name: str(value) for name, value in values.items()}
        for line in [_line_of_name(texts)] if args.id is None else _lines(texts):
            print(shortened(line, limit=_MAX_VALUE))
    if rows and args.id is None:
        return 0
    if ends:
        print("\n".join([_ENDS, *(shortened(each, limit=_MAX_VALUE) for each in ends)]))
    if not rows:
        location = named_location(args.archive)
        is_open = not location.url and journals(location.local)
        more = "; rows of the last minutes may still be in an open journal" if is_open else ""
        print(
            shortened(
                f"{args.id or args.name}: is in no row of {args.archive}{more}", limit=_MAX_VALUE
            )
        )
    return int(not rows)


def _line_of_name(values: Mapping[str, str]) -> str:
    return "  ".join([*(values[name] for name in _HEADLINE if name in values), values["id"]])


def _ends(storage: Storage, rows: Sequence[Row]) -> list[str]:
    """Return the targets of `rows` that carry no id, by the routes at the time of each row.

    There are none where every gateway of the archive has a row.
    """
    files = routes_files(storage)
    passed = {row["gateway"] for row in rows}
    if all(any(is_instance(file.writer, each) for each in passed) for file in files):
        return []
    copies: dict[RoutesFile, set[tuple[str, str, str]]] = defaultdict(set)
    for row in (each for each in rows if each["leg"] == Leg.DELIVERED.value):
        label = row["target"].partition("#")[0]  # without the number of a further tag
        at = microseconds(row["time"])
        for file in files:
            if is_instance(file.writer, row["gateway"]) and file.since <= at < file.until:
                copies[file].add((row["gateway"], row["route"], label))
    ends = {
        "  ".join(("", *copy))
        for stored in read_routes(storage, list(copies))
        for copy in copies[stored.file]
        if copy[1:] in _without_id(stored.rules or ())
    }
    return sorted(ends)


def _without_id(rules: Rules) -> set[tuple[str, str]]:
    """Return route and label of each target whose copies do not carry the id."""
    routes = to_routes(rules)
    return {(r.name, each.label) for r in routes for each in r.targets if not each.access.ids}


def _lines(values: Mapping[str, str]) -> Iterator[str]:
    yield "  ".join(values[name] for name in _HEADLINE if name in values)
    width = max(map(len, values))
    for name, value in values.items():
        if name not in _HEADLINE:
            yield f"  {name:{width}}  {value}"


def _shown(name: str, value: Untyped) -> Untyped:
    """Return a value that JSON has: a payload with escapes, a list as one text."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f} UTC"
    if isinstance(value, bytes):
        return value.hex() if name in _HEXADECIMAL else repr(value)[2:-1]
    if isinstance(value, list):
        pairs = (each if isinstance(each, str) else "=".join(map(str, each)) for each in value)
        return ", ".join(pairs)
    return value
