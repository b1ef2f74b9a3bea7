"""`gateway withdraw CONFIG`: list what this gateway made at its brokers, and stays there.

These are sessions, durable subscriptions, consumers and queues that the memory of its sources
names, with the number of messages that each holds, where the broker tells.
"""

from __future__ import annotations

import argparse

from gateway.cli.live.lease import open_lease
from gateway.cli.parsers import CONFIG, CommandParser
from gateway.config.load import Configuration, load
from gateway.runtime.wiring import memory_place
from gateway.runtime.withdrawal import Thing, find_things
from gateway.terminal.text import print_line


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG)


def run(args: argparse.Namespace) -> int:
    """Print one line for each thing.

    Raises:
        GatewayError: the memory cannot be read, or is damaged.
    """
    configuration = load(args.config)
    place = memory_place(configuration, open_lease(configuration))
    if place is None:
        print_line("nothing is remembered: without `archive` and `spool` no memory outlives a run")
        return 0
    things = find_things(configuration, place)
    for each in things:
        _print(configuration, each)
    if not things:
        print_line("nothing: the memory of this gateway has no session, queue or consumer")
    return 0


def _print(configuration: Configuration, thing: Thing) -> None:
    made = thing.made
    within = f" of {made.within}" if made.within else ""
    text = f"{thing.endpoint}: {made.kind} {made.name}{within} at {made.broker}: {_state(thing)}"
    print_line(configuration.hidden.hide(text, ("endpoints", thing.endpoint)))


def _state(thing: Thing) -> str:
    if thing.held is None:
        return thing.fault
    if not thing.held.exists:
        return "is there no more"
    count = thing.held.messages
    if count is None:
        return "an unknown number of messages"
    return f"{count:,} message{'' if count == 1 else 's'}"
