"""`gateway archive verify`: prove that no row of an archive is missing, added or changed.

Rows are not compared: see gateway reconcile. Exit status: 0 proven, 1 not proven, 2 not checked.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.archive.findings import Weight
from gateway.archive.location import ArchiveLocation
from gateway.cli.parsers import ARCHIVE, JSON_RESULT, SEAL_KEY, CommandParser, seal_key
from gateway.clock import moment, now
from gateway.night.cli.arguments import check_written, named_location, named_storage, parse_date
from gateway.terminal.text import print_line
from gateway.terminal.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.night.archive.verification.verify import Verified
    from gateway.night.archive.verification.waiting import WaitingJournal


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    parser.add("--date D", "date: YYYY-MM-DD, UTC (all dates)")
    parser.add("--buffer DIR", "archive.buffer of a remote archive, to see open journals", type=str)
    parser.add(*JSON_RESULT)
    parser.add(*SEAL_KEY)


def run(args: argparse.Namespace) -> int:
    verified = _verify(args)
    if args.json:
        print(json.dumps(_facts(verified)))
        return int(not verified.complete)
    for finding in verified.findings:
        print_line(str(finding))
    for pause in verified.pauses:
        if pause.end > now():  # the end of its date
            print_line(f"{pause.gateway} has not run since {_time(pause.begin)} UTC")
        else:
            print_line(f"{pause.gateway} did not run {_interval(pause.begin, pause.end)}")
    for holder in verified.holders:
        lease = f", lease {holder.lease}" if holder.lease else ""
        print_line(f"{holder.writer} was active {_interval(holder.begin, holder.end)}{lease}")
    rows = sum(segment.rows for segment in verified.segments)
    numbers = {"seal": verified.seals, "segment": len(verified.segments), "row": rows}
    print(", ".join(counted(number, noun) for noun, number in numbers.items()))
    errors = sum(finding.weight is Weight.ERROR for finding in verified.findings)
    if verified.unproven:
        print(f"absent or changed: {counted(verified.unproven, 'more row')} that seals list")
    for line in _waiting(verified.journals, args.archive):
        print_line(line)
    if errors:
        print(f"not proven: {counted(errors, 'error')}")
    elif verified.proven:
        print("proven: nothing is missing or changed")
    return int(not verified.complete)


def _waiting(journals: Sequence[WaitingJournal], archive: str) -> Iterator[str]:
    """Yield what is to do about the journals whose rows no seal proves yet."""
    live = sum(each.live for each in journals)
    if live:
        yield f"rows not proven yet: {counted(live, 'journal')} of a process that runs"
    if ended := sorted({each.name.writer for each in journals if not each.live}):
        number = counted(len(journals) - live, "journal")
        yield (
            f"rows not proven yet: {number} of {', '.join(ended)}, whose process ended before it"
            " sealed them; nothing is lost, and the next start of that instance seals them, or the"
            f" next night: gateway reconcile {archive}"
        )


def _facts(verified: Verified) -> dict[str, object]:
    """Return the result for scripts; its keys are in docs/archive.md. Times: microseconds UTC."""
    return {
        "version": 1,
        "proven": verified.proven,
        "seals": verified.seals,
        "open_journals": len(verified.journals),
        "segments": len(verified.segments),
        "rows": sum(segment.rows for segment in verified.segments),
        "unproven": verified.unproven,
        "findings": list(map(asdict, verified.findings)),
        "pauses": [asdict(each) for each in verified.pauses],
        "holders": [asdict(each) for each in verified.holders],
    }


def _journals(location: ArchiveLocation, buffer: str | None) -> Path | None:
    """Return the folder of the journals; None when it is out of reach.

    Raises:
        ArchiveError: the buffer is not a folder.
    """
    if buffer is None:
        return None if location.url else location.local
    return named_location(buffer).local


def _verify(args: argparse.Namespace) -> Verified:
    from gateway.night.archive.verification.verify import verify_archive, verify_day

    day, journals = parse_date(args.date), _journals(named_location(args.archive), args.buffer)
    key = seal_key(args)
    with named_storage(args.archive) as storage:
        check_written(args.archive, storage, journals)
        if day is None:
            return verify_archive(storage, key, journals=journals)
        return verify_day(storage, day, key, journals=journals)


def _interval(begin: int, end: int) -> str:
    return f"from {_time(begin)} to {_time(end)} UTC"


def _time(at: int) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M:%S}"
