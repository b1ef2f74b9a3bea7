"""Recovery of identities and echoes from the journals of the last run.

A journal holds a message only after all its outcomes were known, so a message found there need
not be delivered again when the source repeats it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from gateway.archive.durable import read_regular
from gateway.archive.journal.records import Cell, Damage, Rows, is_journal, read_records
from gateway.archive.layout import is_instance, journals, parse_journal_name
from gateway.archive.schema import Leg
from gateway.model.dead_letter_rule import LOOP
from gateway.routing.origin_path import GatewayIdentity
from gateway.routing.route import Route
from gateway.runtime.delivery.duplicates import Identity
from gateway.runtime.delivery.echoes import COPY_LIFETIME, EchoKey, SentCopy
from gateway.runtime.inbound.saved_echoes import saved_echoes

MAX_JOURNALS: Final = 2  # that are read of each instance: the one open at its end, and one before


@dataclass(slots=True)
class RecoveredState:
    """Identities by source endpoint, and copies sent to echo brokers."""

    identities: dict[str, list[Identity]] = field(default_factory=dict)
    sent: list[SentCopy] = field(default_factory=list)


def recover(
    root: Path,
    gateway: GatewayIdentity,
    brokers: Mapping[str, str],
    routes: Sequence[Route] = (),
) -> RecoveredState:
    """Read the latest journals of each instance of `gateway` that can be read.

    `brokers` maps endpoints to their echo brokers; `routes` tell where copies came from.
    Sent copies are omitted when their echo was recorded, or when they are older than
    COPY_LIFETIME.
    """
    identities: dict[str, list[Identity]] = {}
    saved = saved_echoes(root, gateway.name)
    sent: list[tuple[int, SentCopy]] = []
    returned: Counter[EchoKey] = Counter()
    echoes: set[Cell] = set()  # ids
    for path in _latest(root, gateway.name):
        try:
            data = read_regular(path)
        except OSError:
            continue  # converted meanwhile
        for rows in _batches(data) if is_journal(data) else ():
            leg, endpoint = rows.common.get("leg"), str(rows.common.get("endpoint"))
            broker = brokers.get(endpoint)
            if leg == Leg.RECEIVED.value:
                identities.setdefault(endpoint, []).extend(_identities(rows))
            elif leg == Leg.DELIVERED.value and broker is not None:
                sent += _sent_copies(rows, broker, gateway, routes)
            elif leg == Leg.CUT.value and rows.common.get("rule") == LOOP and broker is not None:
                found = dict(zip(rows.values("id"), _contents(rows), strict=True))
                new = found.keys() - echoes  # an echo has a row for each target
                returned.update((broker, *found[each]) for each in new)
                echoes |= new
    return RecoveredState(identities, saved + _without_echoes(sent, returned))


def _latest(root: Path, gateway: str) -> Iterator[Path]:
    """Yield the latest journals of each instance, by instance."""
    for writer, own in groupby(journals(root), key=_writer_in):
        if is_instance(writer, gateway):
            yield from list(own)[-MAX_JOURNALS:]


def _writer_in(journal: Path) -> str:
    name = parse_journal_name(journal.stem)
    return "" if name is None else name.writer


def _without_echoes(
    sent: Sequence[tuple[int, SentCopy]], returned: Counter[EchoKey]
) -> list[SentCopy]:
    """The copies, with the times at which they were sent, whose echo may still come."""
    waiting: list[SentCopy] = []
    oldest = max((at for at, _ in sent), default=0) - int(COPY_LIFETIME * 1_000_000)
    for at, copy in sent:
        if returned[copy[0]]:
            returned[copy[0]] -= 1
        elif at >= oldest:
            waiting.append(copy)
    return waiting


def _batches(data: bytes) -> Iterator[Rows]:
    for record in read_records(data, required=("endpoint",)):
        if not isinstance(record, Damage):
            yield from record


def _identities(rows: Rows) -> Iterator[Identity]:
    ids = zip(rows.values("identity"), rows.values("origin_id"), strict=True)
    for (name, digest), (identity, own) in zip(_contents(rows), ids, strict=True):
        if (found := own if identity is None else identity) is not None:
            yield name, str(found), digest


def _sent_copies(
    rows: Rows, broker: str, gateway: GatewayIdentity, routes: Sequence[Route]
) -> Iterator[tuple[int, SentCopy]]:
    at, names = int(str(rows.common["time"])), rows.values("source_name")
    for content, route, name in zip(_contents(rows), rows.values("route"), names, strict=True):
        passed = [
            gateway.mark(each.broker, str(name), each.dialect)
            for each in routes
            if each.name == route and name is not None
        ]
        yield at, ((broker, *content), (*passed, gateway.entry(str(route))))


def _contents(rows: Rows) -> Iterator[tuple[str, bytes]]:
    """The name and the hash of each message."""
    for name, digest in zip(rows.values("name"), rows.values("hash"), strict=True):
        yield str(name), digest if isinstance(digest, bytes) else b""
