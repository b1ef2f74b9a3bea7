"""Recovery of identities and echoes from the journals of the last run.

A journal holds a message only after all its outcomes were known, so a message found there need
not be delivered again when the source repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.archive.journal.records import Cell, Damage, Rows, is_journal, read_records
from gateway.archive.layout import journals, writer_name
from gateway.archive.schema import Leg
from gateway.runtime.inbound.dedup import Identity
from gateway.runtime.inbound.echo_cache import COPY_LIFETIME, EchoKey

MAX_JOURNALS: Final = 2  # journals that are read: the one open at the crash and the one before


@dataclass(slots=True)
class RecoveredState:
    """Identities by source endpoint, and copies sent to echo brokers."""

    identities: dict[str, list[Identity]] = field(default_factory=dict)
    sent: list[tuple[EchoKey, tuple[str, ...]]] = field(default_factory=list)


def recover(root: Path, gateway: str, brokers: Mapping[str, str]) -> RecoveredState:
    """Read the latest journals of `gateway`; `brokers` maps endpoints to their echo brokers.

    Sent copies older than COPY_LIFETIME are omitted: their echoes have arrived.
    """
    state = RecoveredState()
    times: list[int] = []
    for path in journals(root, writer_name(gateway))[-MAX_JOURNALS:]:
        try:
            data = path.read_bytes()
        except OSError:
            continue  # converted meanwhile
        for rows in _batches(data) if is_journal(data) else ():
            leg = rows.common.get("leg")
            if leg == Leg.RECEIVED.value and "origin_id" in rows.columns:
                _add_identities(rows, state)
            elif leg == Leg.DELIVERED.value and str(rows.common.get("endpoint")) in brokers:
                _add_sent(rows, brokers, state, times)
    if times:
        oldest = max(times) - int(COPY_LIFETIME * 1_000_000)
        state.sent = [each for each, at in zip(state.sent, times, strict=True) if at >= oldest]
    return state


def _batches(data: bytes) -> Iterator[Rows]:
    for record in read_records(data):
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


def _bytes(value: Cell) -> bytes:
    return value if isinstance(value, bytes) else b""
