"""`gateway archive show`: print the path of a message over all gateways of the archive, row by row.

All dates are searched. Exit status: 0 found, 1 not found, 2 not searched.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from gateway.archive.layout import is_instance, journals
from gateway.archive.routes import routes_files
from gateway.cli.parsers import ARCHIVE, CommandParser
from gateway.night.cli.arguments import check_written, named_location, named_storage, parse_date
from gateway.terminal.text import shortened

_HEADLINE: Final = ("time", "gateway", "route", "leg", "target")  # shown in the first line of a row
_HEXADECIMAL: Final = ("id", "trace", "hash")
_MAX_VALUE: Final = 2_000  # characters
_ONE_GATEWAY: Final = (
    "The path has rows of {} only. A target without `add_message_id` ends it: at the next gateway"
    " the message has another id."
)


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    parser.add("ID", "id or trace id in 32 hexadecimal digits, or the id that a source gave it")
    parser.add("--date D", "search this date and the ones beside it: YYYY-MM-DD, UTC")
    parser.add("--json", "print a JSON object for each row")


def run(args: argparse.Namespace) -> int:
    from gateway.night.archive.lookup.message import message_rows  # noqa: PLC0415  # loads PyArrow

    day = parse_date(args.date)
    with named_storage(args.archive) as storage:
        check_written(args.archive, storage)
        rows = list(message_rows(storage, args.id, day))
        writers = {file.writer for file in routes_files(storage)}
    for row in sorted(rows, key=lambda each: each["time"]):
        values = {
            name: _shown(name, value) for name, value in row.items() if value not in (None, "", [])
        }
        if args.json:
            print(json.dumps(values))
            continue
        for line in _lines({name: str(value) for name, value in values.items()}):
            print(shortened(line, limit=_MAX_VALUE))
    passed = {str(row["gateway"]) for row in rows}
    if len(passed) == 1 and not args.json and _of_others(writers, *passed):
        print(_ONE_GATEWAY.format(*passed))
    if not rows:
        location = named_location(args.archive)
        is_open = not location.url and journals(location.local)
        more = "; rows of the last minutes may still be in an open journal" if is_open else ""
        print(shortened(f"{args.id}: is in no row of {args.archive}{more}", limit=_MAX_VALUE))
    return int(not rows)


def _of_others(writers: set[str], gateway: str) -> bool:
    return any(not is_instance(each, gateway) for each in writers)


def _lines(values: Mapping[str, str]) -> Iterator[str]:
    yield "  ".join(values[name] for name in _HEADLINE if name in values)
    width = max(map(len, values))
    for name, value in values.items():
        if name not in _HEADLINE:
            yield f"  {name:{width}}  {value}"


def _shown(name: str, value: Any) -> Any:  # noqa: ANN401  # a cell of any column
    """Return a value that JSON has: a payload with escapes, a list as one text."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f} UTC"
    if isinstance(value, bytes):
        return value.hex() if name in _HEXADECIMAL else repr(value)[2:-1]
    if isinstance(value, list):
        pairs = (each if isinstance(each, str) else "=".join(map(str, each)) for each in value)
        return ", ".join(pairs)
    return value
