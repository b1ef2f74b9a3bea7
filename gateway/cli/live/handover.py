"""`gateway handover CONFIG`: let the standby of a pair take over.

The active instance finishes what it has in flight, and gives its lease away.
"""

from __future__ import annotations

import argparse
import logging
import time
from pathlib import Path
from typing import Final

from gateway.cli.parsers import CommandParser
from gateway.config.load import Configuration, load
from gateway.config.process import StandbySettings
from gateway.errors import GatewayError
from gateway.lease.file_store import FileLeaseStore
from gateway.lease.holder import LeaseHolder
from gateway.lease.lease import LeaseStore, Record
from gateway.terminal.text import print_line

log = logging.getLogger(__name__)


def open_lease(configuration: Configuration) -> LeaseHolder | None:
    """Return the holder of this instance's lease; None for a gateway alone.

    Raises:
        LeaseError: a lease of Kubernetes outside of a pod.
    """
    standby, gateway = configuration.standby, configuration.gateway
    if standby is None:
        return None
    return LeaseHolder(open_store(standby, gateway.name), gateway.instance, standby.seconds)


def open_store(standby: StandbySettings, gateway: str) -> LeaseStore:
    """Return the store of the lease of `gateway`.

    Raises:
        LeaseError: a lease of Kubernetes outside of a pod.
    """
    lease = standby.lease
    if lease.kind == "file":
        return FileLeaseStore(Path(lease.path or ""))
    from gateway.lease.kubernetes_store import (  # noqa: PLC0415  # loads urllib.request
        ApiServer,
        KubernetesLeaseStore,
    )

    name, namespace = lease.name or gateway, lease.namespace or ""
    return KubernetesLeaseStore(ApiServer.of_pod(), name, standby.seconds, namespace)


def is_over(lease: LeaseHolder | None) -> bool:
    """Return whether the lease is lost, or somebody asked to give it away; log which."""
    if lease is None or (lease.holds() and not lease.wanted):
        return False
    if lease.holds():
        log.info("a handover was asked for", extra={"lease": lease.number})
    else:
        log.error("the lease is lost, and another instance may hold it: this one stops")
    return True


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
