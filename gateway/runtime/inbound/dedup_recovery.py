"""What a gateway that starts again should know: what the journals of its last run had recorded.

A journal has a message only when all its ends were known, so what it names need not be delivered
again when the source repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.archive.journal.records import Cell, Damage, Rows, is_journal, read_records
from gateway.archive.layout import journals
from gateway.archive.schema import Leg
from gateway.runtime.inbound.echo_cache import SECONDS, Key

LATEST: Final = 2  # journals that are read: the one a crash left, and the one before it


@dataclass(slots=True)
class Recall:
    """Identities by source endpoint, and copies sent to brokers that return them."""

    seen: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    sent: list[tuple[Key, tuple[str, ...]]] = field(default_factory=list)


def recall(root: Path, gateway: str, brokers: Mapping[str, str]) -> Recall:
    """Read the journals that `gateway` left; `brokers` has those whose echoes matter, by endpoint.

    Of what was sent only the last seconds count: older echoes have come back.
    """
    found = Recall()
    times: list[int] = []
    for path in journals(root, gateway)[-LATEST:]:
        try:
            data = path.read_bytes()
        except OSError:
            continue  # converted meanwhile
        for rows in _batches(data) if is_journal(data) else ():
            leg = rows.common.get("leg")
            if leg == Leg.RECEIVED.value and "origin_id" in rows.columns:
                _take_seen(rows, found)
            elif leg == Leg.DELIVERED.value and str(rows.common.get("endpoint")) in brokers:
                _take_sent(rows, brokers, found, times)
    if times:
        oldest = max(times) - int(SECONDS * 1_000_000)
        found.sent = [each for each, at in zip(found.sent, times, strict=True) if at >= oldest]
    return found


def _batches(data: bytes) -> Iterator[Rows]:
    for record in read_records(data):
        if not isinstance(record, Damage):
            yield from record


def _take_seen(rows: Rows, found: Recall) -> None:
    seen = found.seen.setdefault(str(rows.common["endpoint"]), [])
    pairs = zip(rows.columns["name"], rows.columns["origin_id"], strict=True)
    seen.extend((str(name), str(identity)) for name, identity in pairs if identity is not None)


def _take_sent(rows: Rows, brokers: Mapping[str, str], found: Recall, times: list[int]) -> None:
    common = rows.common
    broker, gateway = brokers[str(common["endpoint"])], str(common["gateway"])
    wanted = map(rows.values, ("route", "name", "hash"))
    for route, name, digest in zip(*wanted, strict=True):
        found.sent.append(((broker, str(name), _bytes(digest)), (f"{gateway}/{route}",)))
        times.append(int(str(common["time"])))


def _bytes(value: Cell) -> bytes:
    return value if isinstance(value, bytes) else b""
