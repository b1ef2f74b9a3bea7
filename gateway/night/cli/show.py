"""`gateway archive show`: print the path of a message over all gateways of the archive, row by row.

The targets follow whose copies do not carry the id, where other gateways may read on, and since
when rows are in journals only. With --name it lists the ids of the messages with that name, the
newest last. All dates are searched. Exit status: 0 found, 1 not found, 2 not searched.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from gateway.archive.heads import WriterHead, read_heads
from gateway.archive.journal.file import acknowledged_size
from gateway.archive.layout import day_of, gateway_of, is_instance, is_replay, safe_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.routes import Rules, read_routes, routes_files
from gateway.archive.schema import Leg
from gateway.cli.parsers import ARCHIVE, CommandParser
from gateway.clock import microseconds, moment
from gateway.errors import ArchiveError
from gateway.night.archive.verification.waiting import waiting_journals
from gateway.night.cli.arguments import check_written, named_location, named_storage, parse_date
from gateway.routing.name_rules import to_routes
from gateway.terminal.text import print_line, shortened
from gateway.untyped import Untyped

if TYPE_CHECKING:  # both load PyArrow
    from gateway.archive.storage import Storage
    from gateway.night.archive.lookup.row_files import Row

_HEADLINE: Final = ("time", "gateway", "route", "leg", "target")  # shown in the first line of a row
_HEXADECIMAL: Final = ("id", "trace", "hash")
_OPEN: Final = (
    "whose journal is open. It closes a quarter of an hour after its first row, or after"
    " `archive.segment_seconds`, and at a stop: ask again then"
)
_WAITS: Final = (
    "whose journal waits for its conversion by the gateway or its next start; the night does it"
    " too: gateway reconcile"
)
MAX_NAMED: Final = 50  # rows of a name
_OLDER: Final = (
    f"only the newest {MAX_NAMED} rows with this name; --date D lists those of another date"
)
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
            rows = nlargest(MAX_NAMED + 1, found, key=itemgetter("time"))
        else:
            rows = list(message_rows(storage, args.id, day))
        location = named_location(args.archive)
        ends = [] if args.id is None or args.json else _ends(location, storage, rows)
        unread = list(_unread(location, storage, day))
    if args.id is None and len(rows) > MAX_NAMED:
        rows.pop()  # the oldest
        print_line(_OLDER, sys.stderr if args.json else None)
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
    if ends:
        print("\n".join([_ENDS, *(shortened(each, limit=_MAX_VALUE) for each in ends)]))
    if not rows:
        text = f"{args.id or args.name}: is in no row of {args.archive}"
        print(shortened(text, limit=_MAX_VALUE))
    for line in unread:
        print_line(line, sys.stderr if args.json else None)
    return int(not rows)


def _line_of_name(values: Mapping[str, str]) -> str:
    return "  ".join([*(values[name] for name in _HEADLINE if name in values), values["id"]])


def _unread(location: ArchiveLocation, storage: Storage, day: date | None) -> Iterator[str]:
    """Yield since when rows of each writer are in no segment, with what to do.

    The journals of a remote archive are on the disks of the gateways: its heads tell of them.
    """
    if location.url:
        heads = [each.head for each in read_heads(storage) if each.head and each.current]
        since = {each.writer: (_opened(each), True) for each in heads if each.open}
    else:
        waiting = [
            each for each in waiting_journals(location.local) if acknowledged_size(each.path) != 0
        ]
        since = {each.name.writer: (each.opened, each.live) for each in reversed(waiting)}
    for writer, (time, is_open) in since.items():
        if day is not None and day_of(time) - day > timedelta(days=1):
            continue
        then = _OPEN if is_open else f"{_WAITS} {shlex.quote(str(location))}"
        since_when = f"{moment(time):%Y-%m-%d %H:%M:%S} UTC"
        yield f"not in this answer: rows of {writer} since {since_when}, {then}"


def _opened(head: WriterHead) -> int:
    """Return when a writer opened its last journal: as it closed the one before."""
    return head.closed.closed if head.closed else head.last_name.start


def _ends(location: ArchiveLocation, storage: Storage, rows: Sequence[Row]) -> list[str]:
    """Return the targets of `rows` behind which a message has another id, by their routes then.

    Such a target carries no id. A route of another gateway takes the name at its broker, and has no
    row of it here; or a gateway has no row at all: it may know the broker by another address.
    """
    from gateway.night.reconcile.input.hop_routes import ParsedRules

    copies = [(microseconds(row["time"]), row) for row in rows if row["leg"] == Leg.DELIVERED.value]
    files = [each for each in routes_files(storage) if not is_replay(each.writer)]
    takers = {(safe_name(row["gateway"]), row["route"], row["endpoint"]) for row in rows}
    is_open = not {gateway_of(each.writer) for each in files} <= {each[0] for each in takers}
    near = [each for each in files if any(each.since <= at < each.until for at, _ in copies)]
    read = [each for each in read_routes(storage, near) if each.rules is not None]
    taken = {each.file: ParsedRules(location, json.dumps(each.rules)) for each in read}
    ends: set[str] = set()
    for at, row in copies:
        there = [each for each in read if each.file.since <= at < each.file.until]
        own = [each for each in there if is_instance(each.file.writer, row["gateway"])]
        others = [each.file for each in there if each not in own]
        label = row["target"].partition("#")[0]  # without the number of a further tag
        for broker in (_without_id(each.rules or ()).get((row["route"], label)) for each in own):
            if broker is None:
                continue
            readers = {
                (gateway_of(each.writer), *source)
                for each in others
                for source in taken[each].reading(broker, row["name"])
            }
            if is_open or readers - takers:
                ends.add("  ".join(("", row["gateway"], row["route"], label)))
    return sorted(ends)


def _without_id(rules: Rules) -> dict[tuple[str, str], str]:
    """Return the broker of each target whose copies do not carry the id, by route and label."""
    return {
        (route.name, each.label): each.access.broker
        for route in to_routes(rules)
        for each in route.targets
        if not each.access.ids
    }


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
