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
from gateway.archive.layout import (
    is_instance,
    journals,
    parse_journal_name,
)
from gateway.archive.schema import Leg
from gateway.runtime.delivery.admission import LOOP
from gateway.runtime.delivery.duplicates import Identity
from gateway.runtime.delivery.echoes import COPY_LIFETIME, EchoKey, SentCopy
from gateway.runtime.inbound.saved_echoes import saved_echoes

MAX_JOURNALS: Final = 2  # that are read of each instance: the one open at its end, and one before


@dataclass(slots=True)
class RecoveredState:
    """Identities by source endpoint, and copies sent to echo brokers."""

    identities: dict[str, list[Identity]] = field(default_factory=dict)
    sent: list[SentCopy] = field(default_factory=list)


def recover(root: Path, gateway: str, brokers: Mapping[str, str]) -> RecoveredState:
    """Read the latest journals of each instance of `gateway` that is in reach.

    `brokers` maps endpoints to their echo brokers.
    Sent copies are omitted when their echo was recorded, or when they are older than
    COPY_LIFETIME.
    """
    state = RecoveredState()
    saved = saved_echoes(root, gateway)
    returned: Counter[EchoKey] = Counter()
    times: list[int] = []
    for path in _latest(root, gateway):
        try:
            data = read_regular(path)
        except OSError:
            continue  # converted meanwhile
        for rows in _batches(data) if is_journal(data) else ():
            leg = rows.common.get("leg")
            if leg == Leg.RECEIVED.value and "origin_id" in rows.columns:
                _add_identities(rows, state)
            elif leg == Leg.DELIVERED.value and str(rows.common.get("endpoint")) in brokers:
                _add_sent(rows, brokers, state, times)
            elif leg == Leg.CUT.value and rows.common.get("rule") == LOOP:
                returned.update(_echoes(rows, brokers))
    state.sent = saved + _without_echoes(state.sent, times, returned)
    return state


def _latest(root: Path, gateway: str) -> Iterator[Path]:
    """Yield the latest journals of each instance, by instance."""
    for writer, own in groupby(journals(root), key=_writer_in):
        if is_instance(writer, gateway):
            yield from list(own)[-MAX_JOURNALS:]


def _writer_in(journal: Path) -> str:
    name = parse_journal_name(journal.stem)
    return "" if name is None else name.writer


def _without_echoes(
    sent: Sequence[SentCopy], times: Sequence[int], returned: Counter[EchoKey]
) -> list[SentCopy]:
    """The copies, sent at `times`, whose echo may still come."""
    waiting: list[SentCopy] = []
    if times:
        oldest = max(times) - int(COPY_LIFETIME * 1_000_000)
        for copy, at in zip(sent, times, strict=True):
            if returned[copy[0]]:
                returned[copy[0]] -= 1
            elif at >= oldest:
                waiting.append(copy)
    return waiting


def _batches(data: bytes) -> Iterator[Rows]:
    for record in read_records(data, required=("endpoint",)):
        if not isinstance(record, Damage):
            yield from record


def _add_identities(rows: Rows, state: RecoveredState) -> None:
    identities = state.identities.setdefault(str(rows.common["endpoint"]), [])
    wanted = map(rows.values, ("name", "origin_id", "hash"))
    identities.extend(
        (str(name), str(identity), _bytes(digest))
        for name, identity, digest in zip(*wanted, strict=True)
        if identity is not None
    )


def _add_sent(
    rows: Rows, brokers: Mapping[str, str], state: RecoveredState, times: list[int]
) -> None:
    common = rows.common
    broker, gateway = brokers[str(common["endpoint"])], str(common["gateway"])
    wanted = map(rows.values, ("route", "name", "hash"))
    for route, name, digest in zip(*wanted, strict=True):
        state.sent.append(((broker, str(name), _bytes(digest)), (f"{gateway}/{route}",)))
        times.append(int(str(common["time"])))


def _echoes(rows: Rows, brokers: Mapping[str, str]) -> Iterator[EchoKey]:
    """The keys of the echoes that were cut."""
    broker = brokers.get(str(rows.common["endpoint"]))
    if broker is not None:
        for name, digest in zip(*map(rows.values, ("name", "hash")), strict=True):
            yield broker, str(name), _bytes(digest)


def _bytes(value: Cell) -> bytes:
    return value if isinstance(value, bytes) else b""
