"""`gateway replay`: send archived messages again.

Only messages with an archived payload can be sent. A copy that an earlier replay delivered is not
sent again. Exit status: 0 all delivered (dry run: all can be sent under their former names), 1 not
all, or messages not found, 2 not done.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final

from gateway.cli.parsers import ARCHIVE, CommandParser
from gateway.clock import microseconds
from gateway.config.load import load
from gateway.errors import ArchiveError
from gateway.model.copy_class import EXCEPTION_CLASSES
from gateway.night.cli.arguments import named_storage
from gateway.night.replay.replay_archive import Replay, ReplayChoice, ReplayCopy
from gateway.night.replay.sender import archived_names, convert_killed_replays, one_replay
from gateway.terminal.text import print_line
from gateway.terminal.units import counted

if TYPE_CHECKING:
    from gateway.archive.storage import Storage

MAX_LINES: Final = 20  # for copies that did not arrive, and for ids that were not found
_WITHOUT_PAYLOAD: Final = """\
{} without an archived payload cannot be sent from the archive. Ask the publishers to send them
again, or send the dead letters among them with `gateway dead-letters replay`. `gateway archive
show` prints name, time and size. With `archive_payload: true` the route archives later payloads."""


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    parser.add("--config C", "read endpoints and routes from C", required=True)
    text = "send the messages of route R; repeat it for several routes, one after the other"
    parser.add("--route R", text, dest="routes", action="append", required=True)
    parser.add("--from T", "received at T or later, UTC", dest="since", required=True)
    parser.add("--to T", "received before T, UTC", dest="until", required=True)
    text = f"send only this class of gateway reconcile: {', '.join(EXCEPTION_CLASSES)}"
    parser.add("--class CLASS", text, dest="class_", choices=EXCEPTION_CLASSES)
    parser.add("--again", "send also the copies that an earlier replay delivered")
    parser.add("--dry-run", "say what would be sent; open no connection")


def run(args: argparse.Namespace) -> int:
    with named_storage(args.archive) as storage:  # the rest prints
        since, until = _time("--from", args.since), _time("--to", args.until)
    if since >= until:
        raise ArchiveError(f"--to {args.until!r}: is not after --from {args.since!r}")
    configuration = load(args.config)
    replays = {route: Replay(configuration, route) for route in args.routes}
    status = 0
    alone = nullcontext() if args.dry_run else one_replay(configuration)
    with alone, archived_names(configuration):
        convert_killed_replays(configuration)
        for route, replay in replays.items():
            if len(replays) > 1:
                print_line(f"route {route!r}:")
            with closing(replay):
                status |= _run_route(args, storage, (route, since, until), replay)
    if configuration.archive is None and any(each.counts["sent"] for each in replays.values()):
        print_line(f"{args.config}: has no archive, so the deliveries are not recorded", sys.stderr)
    return status


def _run_route(
    args: argparse.Namespace, storage: Storage, interval: tuple[str, int, int], replay: Replay
) -> int:
    """Send the messages of a route, received in an interval, or say what would be sent."""
    from gateway.night.archive.lookup import search  # Arrow

    range_ = search.ReplayRange(*interval)
    choice = ReplayChoice()
    if args.class_ is not None:
        choice = ReplayChoice(search.ids_in_class(storage, range_, args.class_))
        if not choice.wanted:
            print_line(f"no message of route {range_.route!r} is {args.class_!r} in this interval")
            return 0
    if not args.again:
        choice = replace(choice, recovered=search.replayed_copies(storage, *interval[:2]))
    selection = _Selection(search.received_rows(storage, range_), choice)
    if args.dry_run:
        status = _compare(replay, selection, search.sent_names(storage, range_))
    else:
        status = _send(replay, selection)
    _print_changes(replay.counts)
    return selection.report_unfound(range_.route) or status


class _Selection:
    """The rows to send; it notes the ids that were not found.

    Mutable: owned by the command.
    """

    def __init__(self, rows: Iterator[dict[str, Any]], choice: ReplayChoice) -> None:
        self._rows, self._wanted, self.choice = rows, choice.wanted, choice
        self._unfound = set(choice.wanted or ())
        self._count = 0

    def rows(self) -> Iterator[dict[str, Any]]:
        for row in self._rows:
            if self._wanted is None or row["id"] in self._wanted:
                self._unfound.discard(row["id"])
                self._count += 1
                yield row

    def report_unfound(self, route: str) -> int:
        """Print what the archive does not have; return the exit status."""
        if self._wanted is None:
            if not self._count:
                print_line(f"no message of route {route!r} was received then", sys.stderr)
            return int(not self._count)
        unfound = sorted(self._unfound)
        if _print_first(f"{each.hex()}: no received row in this interval" for each in unfound):
            print_line(
                f"not found: {len(unfound)} of {counted(len(self._wanted), 'message')}; widen"
                " --from and --to, or look at them with `gateway archive show`",
                sys.stderr,
            )
        return int(bool(unfound))


def _print_first(lines: Iterable[str]) -> int:
    """Print the first of the lines on standard error, and how many follow; return their number."""
    number = 0
    for number, line in enumerate(lines, start=1):  # the last one counts them
        if number <= MAX_LINES:
            print_line(line, sys.stderr)
    if number > MAX_LINES:
        print_line(f"... and {number - MAX_LINES} more", sys.stderr)
    return number


def _send(replay: Replay, selection: _Selection) -> int:
    failed = _print_first(starmap(_line, replay.send(selection.rows(), selection.choice)))
    print_line(f"{replay.counts['sent']} arrived, {failed} did not")
    return int(failed > 0)


def _print_changes(counts: Counter[str]) -> None:
    """Print what is left out: copies that are recovered already, parts of messages, payloads."""
    if counts["recovered"]:
        which = f"{counts['recovered']} not sent again: an earlier replay delivered them"
        print_line(f"{which}; --again sends them, too")
    for change in ("without redacted values", "without their expiry"):
        if counts[change]:
            print_line(f"{counted(counts[change], 'message')} {change}")
    if counts["without a payload"]:
        which = counted(counts["without a payload"], "message")
        print(_WITHOUT_PAYLOAD.format(which), file=sys.stderr)


def _compare(
    replay: Replay,
    selection: _Selection,
    before: Mapping[tuple[str, str], Collection[str]],
) -> int:
    """Print a line for each name and target: the number of messages, and what would be sent."""
    counted: Counter[tuple[str, str, str]] = Counter()
    sent = different = 0
    for row in selection.rows():
        for copy in replay.plan(row, selection.choice):
            then = before.get((copy.delivery.label, row["name"]), ())
            counted[row["name"], copy.delivery.label or "-", _what_is_sent(copy, then)] += 1
            sent += copy.message is not None
            different += copy.message is not None and list(then) != [copy.message.address]
    for (name, target, text), number in sorted(counted.items()):
        print_line(f"{number:>8}  {name} -> {target}: {text}")
    unsent = counted.total() - sent
    others = f"{different} of them under another name"
    print_line(f"would send {sent}, {others}; {unsent} cannot be sent")
    return int(different > 0 or unsent > 0)


def _what_is_sent(copy: ReplayCopy, then: Collection[str]) -> str:
    """Return under which name a copy would be sent, and the names of its name before."""
    if copy.message is None:
        return f"not sent: {copy.reason}"
    if list(then) == [copy.message.address]:
        return f"sent as {copy.message.address}, as before"
    former = f"before as {', '.join(sorted(then))}" if then else "never sent before"
    return f"sent as {copy.message.address}, {former}"


def _line(copy: ReplayCopy, reason: str) -> str:
    target = copy.delivery.label or "-"
    return f"{copy.row['id'].hex()} {copy.row['name']} -> {target}: {reason}"


def _time(option: str, text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArchiveError(
            f"{option}: {text!r} is no time; write 2026-03-14T06:00, in UTC or with an offset"
        ) from error
    return microseconds(time if time.tzinfo else time.replace(tzinfo=UTC))
