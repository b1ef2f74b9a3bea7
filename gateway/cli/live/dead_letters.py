"""`gateway dead-letters list|show|replay|purge CONFIG`: what no target took, and what to do."""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.parsers import Commands
from gateway.config.load import Configuration, load
from gateway.errors import GatewayError, SpoolError
from gateway.model.outcome import Outcome, Settlement
from gateway.replay.dead_letters import Attempt, Resend
from gateway.runtime.outbound.dead_letters import COLUMNS, REMOVE, Letter, to_letter
from gateway.runtime.outbound.spool_db import connect
from gateway.runtime.record.rows import header_map, payload_bytes

SHOWN = 4096  # bytes of a payload that `show` prints


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("dead-letters", help="messages that no target took")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, action, text in (
        ("list", run_list, "one line each"),
        ("show", run_show, "everything about some of them"),
        ("replay", run_replay, "send them again; those that arrive are taken away"),
        ("purge", run_purge, "take them away for good"),
    ):
        each = actions.add_parser(name, help=text)
        each.add_argument("config", type=Path, metavar="CONFIG")
        each.add_argument("numbers", type=int, nargs="*", metavar="NUMBER", help="all when absent")
        each.add_argument("--route", help="only of this route")
        each.add_argument("--rule", help="only those set aside by this rule")
        if name in {"list", "show"}:
            each.add_argument("--json", action="store_true", help="JSON, a line each")
        if name == "replay":
            each.add_argument("--dry-run", action="store_true", help="say what would be sent")
        if name == "purge":
            each.add_argument("--yes", action="store_true", help="really; else only count them")
        each.set_defaults(run=action)


def run_list(args: argparse.Namespace) -> int:
    """Exit status: 0, also when there are none."""
    _, database = _open(args)
    with closing(database):
        if args.json:
            for letter in _letters(database, args):
                print(json.dumps(_facts(letter)))
            return 0
        table = Table("number", "time", "route", "target", "rule", "name", box=None)
        for letter in _letters(database, args):
            target = letter.target or "(no route)"
            cells = (str(letter.number), _time(letter.time), letter.route, target, letter.rule)
            table.add_row(*map(Text, (*cells, letter.source_name)))
    if table.row_count:
        Console().print(table)
    print(f"{table.row_count} dead letter{'' if table.row_count == 1 else 's'}")
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Exit status: 1 when there is none of that number."""
    _, database = _open(args)
    found = 0
    with closing(database):
        for letter in _letters(database, args):
            found += 1
            facts = _facts(letter) | _content(letter)
            if args.json:
                print(json.dumps(facts))
            else:
                print("\n".join(f"{name:>14}  {value}" for name, value in facts.items()) + "\n")
    return _none(found)


def run_replay(args: argparse.Namespace) -> int:
    """Exit status: 0 when all that were asked for arrived, else 1."""
    configuration, database = _open(args)
    with closing(database), closing(Resend(configuration, database)) as resend:
        plan = sorted(resend.plan(_letters(database, args)), key=lambda each: each.endpoint)
        if args.dry_run:
            for attempt in plan:
                print(_line(attempt, attempt.settled))
            return _none(len(plan))
        ends: Counter[Outcome] = Counter()
        for attempt, settled in resend.send(plan):
            ends[settled.outcome] += 1
            if settled.outcome is not Outcome.ACCEPTED:
                print(_line(attempt, settled), file=sys.stderr)
    print(f"{ends[Outcome.ACCEPTED]} arrived, {ends.total() - ends[Outcome.ACCEPTED]} stay")
    return _none(len(plan)) or int(ends[Outcome.ACCEPTED] < ends.total())


def run_purge(args: argparse.Namespace) -> int:
    _, database = _open(args)
    with closing(database):
        numbers = [letter.number for letter in _letters(database, args)]
        if args.yes:
            for number in numbers:
                database.execute(REMOVE, (number,))
    done = "taken away" if args.yes else "would be taken away; say --yes to do it"
    print(f"{len(numbers)} {done}")
    return _none(len(numbers))


def _open(args: argparse.Namespace) -> tuple[Configuration, sqlite3.Connection]:
    configuration = load(args.config)
    if configuration.spool is None:
        raise SpoolError(
            f"{args.config}: has no section `spool`, so dead letters are only in the archive;"
            " add one with a `path`"
        )
    return configuration, connect(Path(configuration.spool.path))


def _letters(database: sqlite3.Connection, args: argparse.Namespace) -> Iterator[Letter]:
    conditions, values = ["1"], list[object]()
    for column in ("route", "rule"):
        if getattr(args, column) is not None:
            conditions.append(f"{column} = ?")
            values.append(getattr(args, column))
    if args.numbers:
        conditions.append(f"number IN ({', '.join('?' * len(args.numbers))})")
        values += args.numbers
    chosen = " AND ".join(conditions)
    query = f"SELECT {', '.join(COLUMNS)} FROM letters WHERE {chosen} ORDER BY number"  # noqa: S608  # constants
    for row in database.execute(query, values):
        try:
            yield to_letter(row)
        except GatewayError as error:
            print(f"gateway: dead letter {row[0]}: {error}", file=sys.stderr)


def _facts(letter: Letter) -> dict[str, object]:
    return {
        "number": letter.number,
        "time": _time(letter.time),
        "id": letter.id.hex(),
        "route": letter.route,
        "source": letter.source,
        "source_name": letter.source_name,
        "target": letter.target,
        "endpoint": letter.endpoint,
        "rule": letter.rule,
        "reason": letter.reason,
        "attempts": letter.attempts,
    }


def _content(letter: Letter) -> dict[str, object]:
    payload = payload_bytes(letter.message.payload)
    more = f" ... ({len(payload)} bytes)" if len(payload) > SHOWN else ""
    text = payload[:SHOWN].decode("utf-8", "backslashreplace") + more
    return {"name": letter.message.address, **header_map(letter.message), "payload": text}


def _line(attempt: Attempt, settled: Settlement | None) -> str:
    letter = attempt.letter
    start = f"{letter.number}  {letter.source_name}"
    if settled is None:
        return f"{start} -> {attempt.endpoint} {attempt.message.address}"
    why = settled.reason or "it was not answered; try again"
    return f"{start}: stays, {settled.rule or settled.outcome.value}: {why}"


def _time(microseconds: int) -> str:
    moment = datetime.fromtimestamp(microseconds / 1_000_000, tz=UTC)
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def _none(found: int) -> int:
    if not found:
        print("gateway: there is no such dead letter", file=sys.stderr)
    return 0 if found else 1
