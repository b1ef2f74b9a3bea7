"""`gateway replay`: send archived messages again, or see what that would do; exit 0, 1 or 2."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.cli.parsers import Commands
from gateway.config.load import load
from gateway.errors import ArchiveError
from gateway.replay.archive import Copy, Replay, micros

SHOWN = 20  # copies that did not arrive are shown one by one


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser(
        "replay",
        help="send archived messages again",
        description="Exit status: 0 all arrived (dry run: every name is as it was), 1 not all,"
        " 2 nothing could be done. Only messages whose payload was kept can be sent.",
    )
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", type=Path, help="folder the gateway archives to")
    add("--config", required=True, type=Path, metavar="C", help="the mapping and the endpoints")
    add("--route", required=True, metavar="R", help="what this route took")
    add("--from", dest="since", required=True, metavar="T", help="received at T or later, UTC")
    add("--to", dest="until", required=True, metavar="T", help="received before T, UTC")
    add(
        "--class", dest="class_", metavar="CLASS", help="only what gateway reconcile found to be so"
    )
    add("--dry-run", action="store_true", help="show names now and then; opens no connection")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from gateway.archive.lookup.search import Span, classed, received_rows, sent_names  # noqa: PLC0415  # Arrow

    if not args.archive.is_dir():
        raise ArchiveError(f"archive {str(args.archive)!r}: is not a folder")
    span = Span(args.route, _time("--from", args.since), _time("--to", args.until))
    if span.since >= span.until:
        raise ArchiveError(f"--to {args.until!r}: is not after --from {args.since!r}")
    wanted = None if args.class_ is None else classed(args.archive, span, args.class_)
    rows = _chosen(received_rows(args.archive, span), wanted)
    with closing(Replay(load(args.config), args.route)) as replay:
        if args.dry_run:
            return _compare(replay, rows, wanted, sent_names(args.archive, span))
        return _send(replay, rows, wanted)


def _chosen(
    rows: Iterator[dict[str, Any]], wanted: Mapping[bytes, Collection[str]] | None
) -> Iterator[dict[str, Any]]:
    return (row for row in rows if wanted is None or row["id"] in wanted)


def _send(
    replay: Replay,
    rows: Iterator[dict[str, Any]],
    wanted: Mapping[bytes, Collection[str]] | None,
) -> int:
    missed = 0
    for copy, reason in replay.send(rows, wanted):
        missed += 1
        if missed <= SHOWN:
            print(_line(copy, reason), file=sys.stderr)
    if missed > SHOWN:
        print(f"... and {missed - SHOWN} more", file=sys.stderr)
    counts = replay.counts
    print(f"{counts['sent']} arrived, {missed} did not")
    for extra in ("without redacted values", "without their expiry"):
        if counts[extra]:
            print(f"{counts[extra]} messages {extra}")
    return int(missed > 0)


def _compare(
    replay: Replay,
    rows: Iterator[dict[str, Any]],
    wanted: Mapping[bytes, Collection[str]] | None,
    before: Mapping[tuple[str, str], Collection[str]],
) -> int:
    """A line for each name and target, with how many messages it is for."""
    counted: Counter[tuple[str, str, str]] = Counter()
    without = 0
    for row in rows:
        without += row["payload"] is None
        targets = None if wanted is None else wanted[row["id"]]
        hops = [hop for hop in replay.hops(row) if targets is None or hop.label in targets]
        for hop in hops:
            now = hop.address if not hop.rule else f"refused: {hop.rule}"
            counted[row["name"], hop.label, now] += 1
        if not hops:
            counted[row["name"], "", "no route takes it any more"] += 1
    different = 0
    for (name, target, now), number in sorted(counted.items()):
        then = before.get((target, name), ())
        same = list(then) == [now]
        different += not same
        shown = "as then" if same else f"then {', '.join(sorted(then)) or 'never sent'}"
        print(f"{number:>8}  {name} -> {target or '-'}: {now} ({shown})")
    print(f"{len(counted)} names, {different} different, {without} messages without a payload")
    return int(different > 0 or without > 0)


def _line(copy: Copy, reason: str) -> str:
    target = copy.hop.label or "-"
    return f"{copy.row['id'].hex()} {copy.row['name']} -> {target}: {reason}"


def _time(option: str, text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArchiveError(
            f"{option} {text!r}: {error}; write 2026-03-14T06:00, in UTC or with an offset"
        ) from error
    return micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
