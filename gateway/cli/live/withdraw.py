"""`gateway withdraw CONFIG`: list the sessions and queues that this gateway left at its brokers.

The memory of its sources names sessions, durable subscriptions, consumers and queues that the
gateway made. Each has a line, with its number of messages where the broker tells.

With --yes they end. The gateway must have stopped, and its spool and dead letters must be empty.
With --only just the named ones are listed, or end: for one that a renamed endpoint left behind. The
spool, which goes on, need not be empty.

One with messages, or with an unknown number of them, ends only where --losing names it; the archive
has a gap for it first. Nothing else ends. Exit status: 0 done, 1 something stays, 2 refused, and
nothing was ended.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from shlex import quote
from typing import Final

from gateway.cli.live.lease import open_lease
from gateway.cli.parsers import CONFIG, CommandParser
from gateway.config.load import Configuration, load
from gateway.errors import GatewayError
from gateway.logs.redaction import redactor_of
from gateway.runtime.inbound.source_memories import MemoryPlace
from gateway.runtime.memory_roles import memory_place
from gateway.runtime.withdrawal import Thing, alone, end_things, find_things, record_loss
from gateway.terminal.text import print_line, print_words
from gateway.terminal.units import counted

NOTHING: Final = "nothing: the memory of this gateway has no session, queue or consumer"


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG)
    parser.add("--yes", "end them; without this option they are only listed")
    text = "list, or with --yes end, just NAME; may be repeated"
    parser.add("--only NAME", text, [], action="append")
    text = "with --yes: also end NAME, with its messages or an unknown number; may be repeated"
    parser.add("--losing NAME", text, [], action="append")


def run(args: argparse.Namespace) -> int:
    """Print one line for each thing. Exit status: 1 when one stays that `--yes` was to end.

    Raises:
        GatewayError: the memory cannot be read; with `--yes`, the gateway runs, or there are
            messages that `--losing` does not name.
    """
    configuration = load(args.config)
    lease = open_lease(configuration)
    place = memory_place(configuration, lease)
    if place is None:
        print_line("nothing is remembered: without `archive` and `spool` no memory outlives a run")
        return 0
    if args.yes:
        with alone(configuration, lease, goes_on=bool(args.only)):
            return _end(configuration, _found(configuration, place, args.only), place, args.losing)
    things = _found(configuration, place, args.only)
    for each in things:
        _print(configuration, each, _state(each))
    if things:
        print_line(f"{len(things)} in all; --yes ends them, --only NAME just one")
    else:
        print_line(NOTHING)
    return 0


def _found(
    configuration: Configuration, place: MemoryPlace, only: Collection[str]
) -> Sequence[Thing]:
    """Return what the gateway made, and of that only what `only` names, if it names anything.

    Raises:
        GatewayError: the memories cannot be read, or a name is of nothing.
    """
    things = find_things(configuration, place)
    _require_known("--only", only, things)
    return [each for each in things if not only or each.made.name in only]


def _end(
    configuration: Configuration,
    things: Sequence[Thing],
    place: MemoryPlace,
    losing: Collection[str],
) -> int:
    if not things:
        print_line(NOTHING)
    lost = [each for each in things if each.may_lose]
    _require_names(things, lost, losing)
    record_loss(configuration, lost)
    stays = False
    for each in end_things(configuration, place, things):
        stays |= each.held is None
        if each.held is None:
            state = f"stays: {each.fault}"
        else:
            state = f"ended, with {_state(each)}" if each.may_lose else "ended"
        _print(configuration, each, state)
    if lost and configuration.archive is None:
        print_line("there is no archive, so no row tells of the messages in them")
    return int(stays)


def _require_names(things: Sequence[Thing], lost: Sequence[Thing], losing: Collection[str]) -> None:
    """Require `--losing` for each thing that ends with messages, and for no other name.

    Raises:
        GatewayError: a name lacks, or is of nothing; nothing was ended.
    """
    _require_known("--losing", losing, things)
    if kept := [each for each in lost if each.made.name not in losing]:
        states = "; ".join(f"{each.made.name} has {_state(each)}" for each in kept)
        options = " ".join(f"--losing {quote(each.made.name)}" for each in kept)
        raise GatewayError(f"nothing was ended: {states}; to lose them, add {options}")


def _require_known(option: str, names: Collection[str], things: Sequence[Thing]) -> None:
    known = {each.made.name for each in things}
    if unknown := sorted({*names} - known):
        listed = ", ".join(sorted(known)) or "none"
        raise GatewayError(f"{option} {unknown[0]}: the gateway made no such name; it has {listed}")


def _print(configuration: Configuration, thing: Thing, state: str) -> None:
    made = thing.made
    within = f" of {made.within}" if made.within else ""
    left = "; nothing reads it any more" if thing.is_left and thing.held is not None else ""
    text = f"{made.kind} {made.name}{within} at {made.broker}: {state}{left}"
    print_words(f"{thing.endpoint}: {redactor_of(configuration).redact(text)}")


def _state(thing: Thing) -> str:
    if thing.held is None:
        return thing.fault
    if not thing.held.exists:
        return "is there no more"
    count = thing.held.messages
    if count is None:
        return "an unknown number of messages"
    return counted(count, "message")
