"""`gateway handover CONFIG`: let the standby of a pair take over.

The active instance finishes what it has in flight, and gives its lease away.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

from gateway.cli.live.lease import open_store
from gateway.cli.parsers import CommandParser
from gateway.config.load import load
from gateway.errors import GatewayError
from gateway.lease.lease import LeaseStore, Record
from gateway.terminal.text import print_line

POLL_INTERVAL: Final = 0.1  # seconds
STANDBY_PATIENCE: Final = 5.0  # seconds in which a standby must show itself


class HandoverError(GatewayError):
    """The lease was not handed over; the text says why, and what to do."""


def add_options(parser: CommandParser) -> None:
    parser.add("CONFIG", "configuration of either instance")


def run(args: argparse.Namespace) -> int:
    configuration = load(args.config, without_secrets=True)
    if (standby := configuration.standby) is None:
        raise HandoverError(f"{args.config}: no section `standby`: this gateway is no pair")
    store = open_store(standby, configuration.gateway.name)
    seconds = configuration.gateway.stop_seconds + 2 * standby.seconds
    before = store.look()
    if before.given:
        raise HandoverError("no instance holds the lease; start one with `gateway run`")
    _require_standby(store, before)
    begun = time.monotonic()
    store.want(before.number)
    after = _next_record(store, before.number, begun + seconds)
    print_line(
        f"{after.holder} holds the lease {after.number} now; {before.holder} had {before.number}"
        f" ({time.monotonic() - begun:.1f} s)"
    )
    return 0


def _require_standby(store: LeaseStore, before: Record) -> None:
    """Wait until an instance shows that it waits.

    Raises:
        HandoverError: none does.
    """
    deadline = time.monotonic() + STANDBY_PATIENCE
    while not any(
        text != before.standby.get(name)
        for name, text in store.look().standby.items()
        if name != before.holder
    ):
        if time.monotonic() >= deadline:
            raise HandoverError(
                f"no standby waits, so {before.holder} keeps the lease; start the other instance"
            )
        time.sleep(POLL_INTERVAL)


def _next_record(store: LeaseStore, number: int, deadline: float) -> Record:
    """Return the record of the instance that took over.

    Raises:
        HandoverError: none did until `deadline` (monotonic).
    """
    while (record := store.look()).number == number or not record.holder:
        if time.monotonic() >= deadline:
            raise HandoverError(
                "the lease was not handed over; see the logs of both instances, and their"
                " `gateway status`"
            )
        time.sleep(POLL_INTERVAL)
    return record
