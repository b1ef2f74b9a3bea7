"""`gateway dead-letters`: list, show, send again or delete dead letters."""

from __future__ import annotations

import argparse
import json
import shlex
import sqlite3
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from gateway.cli.parsers import CONFIG, CommandParser, add_command
from gateway.clock import moment
from gateway.config.load import load, load_sections
from gateway.config.process import ArchiveSettings, DeadLetterSettings, SpoolSettings
from gateway.errors import ConfigErrors, GatewayError, SpoolError
from gateway.model.dead_letter_rule import advice_of
from gateway.model.outcome import Outcome, Settlement
from gateway.night.replay.resend_dead_letters import RECOVERED, Resend, ResendAttempt
from gateway.night.replay.sender import archived_names, one_replay
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.rows import header_map, payload_bytes
from gateway.runtime.outbound.dead_letters import COLUMNS, DELETE, from_row
from gateway.runtime.outbound.spool_db import connect
from gateway.terminal.text import print_line
from gateway.terminal.units import counted

MAX_PAYLOAD = 4096  # bytes of a payload that `show` prints


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    as_json = ("--json", "print one JSON object per line")
    dry_run = ("--dry-run", "print the messages without sending them")
    confirmed = ("--yes", "delete them; without this option only count them")
    for name, run, text, option in (
        ("list", run_list, "list dead letters, one per line", as_json),
        ("show", run_show, "show dead letters with all fields and the payload", as_json),
        ("replay", run_replay, "send dead letters again, and delete delivered ones", dry_run),
        ("purge", run_purge, "delete dead letters", confirmed),
    ):
        action = add_command(actions, name, text, run=run)
        action.add(*CONFIG)
        action.add("NUMBER", "number of a dead letter (all)", dest="numbers", nargs="*")
        action.add("--route ROUTE", "select dead letters of this route")
        action.add("--rule RULE", "select dead letters of this rule")
        action.add(*option)


def run_list(args: argparse.Namespace) -> int:
    """Exit status: 0, even without dead letters."""
    database = _open(args)
    with closing(database):
        if args.json:
            for letter in _letters(database, args):
                print(json.dumps(_facts(letter)))
            return 0
        found = _print_table(_letters(database, args))
    print_line(counted(found.total(), "dead letter"))
    _print_advice(found)
    return 0


def _print_table(letters: Iterator[DeadLetter]) -> Counter[str]:
    """Print a table of the letters; return their number by rule."""
    from gateway.terminal.console import open_console, print_lines  # not for --json
    from gateway.terminal.table import Column, Table

    keys = (Column(head, key=True) for head in ("number", "time", "route", "target"))
    table = Table(*keys, Column("rule"), Column("name", note=True))
    found: Counter[str] = Counter()
    for letter in letters:
        found[letter.rule] += 1
        target = letter.target or "(no route)"
        cells = (str(letter.number), _time(letter.time), letter.route, target, letter.rule)
        table.add_row(*cells, letter.source_name)
    if len(table):
        console = open_console()
        print_lines(table.lines(console), console)
    return found


def _print_advice(rules: Iterable[str], file: TextIO | None = None) -> None:
    for rule in sorted(rules):
        print_line(f"{rule}: {advice_of(rule)}", file)


def run_show(args: argparse.Namespace) -> int:
    """Exit status: 1 if no letter matches, or a number has none."""
    database = _open(args)
    found: set[int] = set()
    with closing(database):
        for letter in _letters(database, args):
            found.add(letter.number)
            facts = _facts(letter) | _content(letter)
            if args.json:
                print(json.dumps(facts))
            else:
                for name, value in facts.items():
                    if value not in {"", None}:  # such as the endpoint of a name without a target
                        print_line(f"{name:>14}  {value}")
                print_line("")
    return _exit_status(args, found)


def run_replay(args: argparse.Namespace) -> int:
    """Exit status: 0 if all selected letters were delivered, else 1."""
    configuration, database = load(args.config), _open(args)
    names, resending = archived_names(configuration), closing(Resend(configuration, database))
    alone = nullcontext() if args.dry_run else one_replay(configuration)
    with closing(database), alone, names, resending as resend:
        plan = sorted(resend.plan(_letters(database, args)), key=lambda each: each.endpoint)
        if args.dry_run:
            for attempt in plan:
                print_line(_line(attempt, attempt.settlement))
        if args.dry_run or not plan:
            return _exit_status(args, {each.letter.number for each in plan})
        outcomes: Counter[Outcome] = Counter()
        kept: set[str] = set()
        for attempt, settlement in resend.send(plan):
            outcomes[settlement.outcome] += 1
            if settlement.outcome is not Outcome.ACCEPTED:
                print_line(_line(attempt, settlement), sys.stderr)
            if settlement.outcome is Outcome.REJECTED:
                kept.add(settlement.rule)
    _print_advice(kept, sys.stderr)
    delivered, total = outcomes[Outcome.ACCEPTED], outcomes.total()
    recovered = sum(each.settlement is RECOVERED for each in plan)
    print_line(f"{delivered - recovered} delivered, {total - delivered} kept")
    if recovered:
        print_line(f"{recovered} not sent again: an earlier replay delivered them")
    status = _exit_status(args, {each.letter.number for each in plan})
    return status or int(delivered < total)


def run_purge(args: argparse.Namespace) -> int:
    """Exit status: 1 if no letter matches, or a number has none."""
    database = _open(args)
    with closing(database):
        numbers = [number for (number,) in _rows(database, args, ["number"])]
        if args.yes:
            for number in numbers:
                database.execute(DELETE, (number,))
    if numbers:
        done = "deleted" if args.yes else "would be deleted; add --yes to delete them"
        print_line(f"{len(numbers)} {done}")
    return _exit_status(args, numbers)


def _open(args: argparse.Namespace) -> sqlite3.Connection:
    """Open the dead letters; of the configuration only the section `spool` is read."""
    spool: SpoolSettings | None = load_sections(args.config, "spool").get("spool")
    if spool is None:
        raise SpoolError(f"{args.config}: has no section `spool`{_elsewhere(args.config)}")
    return connect(Path(spool.path))


def _elsewhere(path: Path) -> str:
    """Return where the dead letters of a gateway without a spool are, and what keeps the next."""
    found: dict[str, Any] = {}
    for name in ("archive", "dead_letters", "standby"):
        with suppress(ConfigErrors):  # a section with findings tells nothing
            found |= load_sections(path, name)
    archive: ArchiveSettings | None = found.get("archive")
    letters: DeadLetterSettings | None = found.get("dead_letters")
    if archive is None:
        text = " and no section `archive`: no dead letter is kept"
    else:
        place = shlex.quote(archive.path)
        text = (
            f": their rows are in the archive: gateway archive show {place} --name NAME;"
            f" gateway replay {place} sends those with a payload (`archive_payload`) again"
        )
    if letters is not None and letters.endpoint:
        return f"{text}; copies of them went to the endpoint {letters.endpoint!r}"
    if "standby" in found:
        return f"{text}; `dead_letters` with an `endpoint` sends copies of the next ones"
    if archive is None:
        return f"{text}; add a section `spool` with a `path`"
    return f"{text}; a section `spool` with a `path` keeps the next ones whole"


def _letters(database: sqlite3.Connection, args: argparse.Namespace) -> Iterator[DeadLetter]:
    for row in _rows(database, args, COLUMNS):
        try:
            yield from_row(row)
        except GatewayError as error:
            print_line(f"gateway: dead letter {row[0]}: {error}", sys.stderr)


def _rows(
    database: sqlite3.Connection, args: argparse.Namespace, columns: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    chosen = "route = ifnull(?, route) AND rule = ifnull(?, rule)"
    if args.numbers:
        chosen += f" AND number IN ({', '.join(map(str, args.numbers))})"
    query = f"SELECT {', '.join(columns)} FROM letters WHERE {chosen} ORDER BY number"  # noqa: S608  # constants
    yield from database.execute(query, (args.route, args.rule))


def _facts(letter: DeadLetter) -> dict[str, object]:
    facts = {each.name: getattr(letter, each.name) for each in fields(letter)}
    del facts["message"]
    facts["advice"] = advice_of(letter.rule)
    return facts | {"time": _time(letter.time), "id": letter.id.hex()}


def _content(letter: DeadLetter) -> dict[str, object]:
    payload = payload_bytes(letter.message.payload)
    rest = f" ... ({len(payload)} bytes)" if len(payload) > MAX_PAYLOAD else ""
    text = payload[:MAX_PAYLOAD].decode("utf-8", "backslashreplace") + rest
    return {"name": letter.message.address, **header_map(letter.message), "payload": text}


def _line(attempt: ResendAttempt, settlement: Settlement | None) -> str:
    letter = attempt.letter
    start = f"{letter.number}  {letter.source_name}"
    if settlement is None:
        return f"{start} -> {attempt.endpoint} {attempt.message.address}"
    if settlement is RECOVERED:
        return f"{start}: not sent, {settlement.reason}"
    reason = settlement.reason or "it was not answered; try again"
    return f"{start}: kept, {settlement.rule or settlement.outcome.value}: {reason}"


def _time(microseconds: int) -> str:
    return f"{moment(microseconds):%Y-%m-%d %H:%M:%SZ}"


def _exit_status(args: argparse.Namespace, found: Collection[int]) -> int:
    """0, or 1 with an error line if no dead letter was found, or a number has none."""
    absent = [str(number) for number in args.numbers if number not in found]
    if found and not absent:
        return 0
    selected = args.numbers or args.route or args.rule
    text = "no such dead letter" if selected else "there is no dead letter"
    print_line(f"gateway: {text}: {', '.join(absent)}".rstrip(": "), sys.stderr)
    return 1
