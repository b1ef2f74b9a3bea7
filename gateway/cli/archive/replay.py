"""`gateway replay`: send archived messages again, or compare their names with the current ones."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.cli.parsers import Commands, add_command
from gateway.config.load import load
from gateway.errors import ArchiveError
from gateway.replay.replay_archive import Replay, ReplayCopy, microseconds

MAX_LINES = 20  # for copies that did not arrive


def add_parsers(commands: Commands) -> None:
    parser = add_command(
        commands,
        "replay",
        "send archived messages again",
        "Only messages with an archived payload can be sent. Exit status: 0 all delivered (dry run:"
        " all names unchanged), 1 not all, 2 not done.",
    )
    add = parser.add_argument
    add("archive", metavar="ARCHIVE", type=Path, help="local folder of the archive")
    add("--config", required=True, type=Path, metavar="C", help="read endpoints and routes from C")
    add("--route", required=True, metavar="R", help="send the messages of route R")
    add("--from", dest="since", required=True, metavar="T", help="received at T or later, UTC")
    add("--to", dest="until", required=True, metavar="T", help="received before T, UTC")
    add("--class", dest="class_", metavar="CLASS", help="send only this class of gateway reconcile")
    add("--dry-run", action="store_true", help="compare the names; open no connection")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from gateway.archive.lookup.search import ReplayRange, ids_in_class, received_rows, sent_names  # noqa: PLC0415  # Arrow

    if not args.archive.is_dir():
        raise ArchiveError(f"archive {str(args.archive)!r}: is not a folder")
    range_ = ReplayRange(args.route, _time("--from", args.since), _time("--to", args.until))
    if range_.since >= range_.until:
        raise ArchiveError(f"--to {args.until!r}: is not after --from {args.since!r}")
    wanted = None if args.class_ is None else ids_in_class(args.archive, range_, args.class_)
    rows = _selected(received_rows(args.archive, range_), wanted)
    with closing(Replay(load(args.config), args.route)) as replay:
        if args.dry_run:
            return _compare(replay, rows, wanted, sent_names(args.archive, range_))
        return _send(replay, rows, wanted)


def _selected(
    rows: Iterator[dict[str, Any]], wanted: Mapping[bytes, Collection[str]] | None
) -> Iterator[dict[str, Any]]:
    return (row for row in rows if wanted is None or row["id"] in wanted)


def _send(
    replay: Replay,
    rows: Iterator[dict[str, Any]],
    wanted: Mapping[bytes, Collection[str]] | None,
) -> int:
    failed = 0
    for copy, reason in replay.send(rows, wanted):
        failed += 1
        if failed <= MAX_LINES:
            print(_line(copy, reason), file=sys.stderr)
    if failed > MAX_LINES:
        print(f"... and {failed - MAX_LINES} more", file=sys.stderr)
    counts = replay.counts
    print(f"{counts['sent']} arrived, {failed} did not")
    for change in ("without redacted values", "without their expiry"):
        if counts[change]:
            print(f"{counts[change]} messages {change}")
    return int(failed > 0)


def _compare(
    replay: Replay,
    rows: Iterator[dict[str, Any]],
    wanted: Mapping[bytes, Collection[str]] | None,
    before: Mapping[tuple[str, str], Collection[str]],
) -> int:
    """Print a line for each name and target: the number of messages, and both target names."""
    counted: Counter[tuple[str, str, str]] = Counter()
    without_payload = 0
    for row in rows:
        without_payload += row["payload"] is None
        targets = None if wanted is None else wanted[row["id"]]
        deliveries = [
            delivery
            for delivery in replay.deliveries(row)
            if targets is None or delivery.label in targets
        ]
        for delivery in deliveries:
            now = delivery.address if not delivery.rule else f"refused: {delivery.rule}"
            counted[row["name"], delivery.label, now] += 1
        if not deliveries:
            counted[row["name"], "", "no route takes it any more"] += 1
    different = 0
    for (name, target, now), number in sorted(counted.items()):
        then = before.get((target, name), ())
        same = list(then) == [now]
        different += not same
        comparison = "as then" if same else f"then {', '.join(sorted(then)) or 'never sent'}"
        print(f"{number:>8}  {name} -> {target or '-'}: {now} ({comparison})")
    summary = f"{len(counted)} names, {different} different"
    print(f"{summary}, {without_payload} messages without a payload")
    return int(different > 0 or without_payload > 0)


def _line(copy: ReplayCopy, reason: str) -> str:
    target = copy.delivery.label or "-"
    return f"{copy.row['id'].hex()} {copy.row['name']} -> {target}: {reason}"


def _time(option: str, text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArchiveError(
            f"{option} {text!r}: {error}; write 2026-03-14T06:00, in UTC or with an offset"
        ) from error
    return microseconds(time if time.tzinfo else time.replace(tzinfo=UTC))
