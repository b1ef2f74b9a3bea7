"""Archived messages sent again through the mapping as it is now; what arrives is recorded.

Messages are read, sent and answered a batch at a time, in the order of their receipt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, Step
from gateway.clock import now
from gateway.config.load import Configuration
from gateway.errors import ArchiveError, EndpointError, TranslationError
from gateway.model.message import Message
from gateway.model.outcome import Outcome
from gateway.replay.outbox import TOGETHER, Outbox
from gateway.routing.router import Hop, Router
from gateway.runtime.record.restore import redacted, restore
from gateway.runtime.record.rows import fingerprint

AGAIN: Final = 2  # the attempt of a replayed delivery: the reconciliation knows it as a second one

ArchiveRow = Mapping[str, Any]
Wanted = Mapping[bytes, Collection[str]]


@dataclass(frozen=True, slots=True)
class Copy:
    """One message for one target, as it would be sent now; `message` None when it cannot be."""

    row: ArchiveRow
    hop: Hop
    message: Message | None
    reason: str = ""


class Replay:
    """Plans and sends; mutable, it has sinks and an archive open until it is closed."""

    def __init__(self, configuration: Configuration, route: str) -> None:
        """Replay what `route` took.

        Raises:
            EndpointError: the configuration has no such route.
        """
        routes = [each for each in configuration.routes if each.name == route]
        if not routes:
            known = ", ".join(sorted({each.name for each in configuration.routes}))
            raise EndpointError(f"replay: no route {route!r} in the configuration; it has {known}")
        self._routers = {each.endpoint: Router(each.dialect, [each]) for each in routes}
        self._outbox = Outbox(configuration, "replay")
        self.counts: Counter[str] = Counter()

    def hops(self, row: ArchiveRow) -> list[Hop]:
        """Where the mapping sends the message of a row now, or why it does not."""
        router = self._routers.get(row["endpoint"])
        ways = router[row["name"]] if router is not None else ()
        return [hop for way in ways for hop in way.hops]

    def plan(self, row: ArchiveRow, targets: Collection[str] | None) -> Iterator[Copy]:
        """The copies of one row, for `targets` alone where those are given."""
        hops = [hop for hop in self.hops(row) if targets is None or hop.label in targets]
        if not hops:
            yield Copy(row, Hop(None, None, ""), None, "the route does not take it any more")
            return
        try:
            message = self._fresh(restore(row))
        except ArchiveError as error:
            yield from (Copy(row, hop, None, str(error)) for hop in hops)
            return
        self.counts["without redacted values"] += redacted(row)
        for hop in hops:
            yield self._through(row, hop, message)

    def send(self, rows: Iterable[ArchiveRow], wanted: Wanted | None) -> Iterator[tuple[Copy, str]]:
        """Send the rows and count; yields every copy that did not arrive, with the reason.

        Raises:
            GatewayError: an endpoint cannot be opened, or the archive cannot be written.
        """
        rest = iter(rows)
        while batch := list(islice(rest, TOGETHER)):
            copies = [
                copy
                for row in batch
                for copy in self.plan(row, None if wanted is None else wanted[row["id"]])
            ]
            for copy in copies:
                if copy.message is None:
                    self.counts["not sent"] += 1
                    yield copy, copy.reason
            yield from self._send([copy for copy in copies if copy.message is not None])

    def close(self) -> None:
        self._outbox.close()

    def _fresh(self, message: Message) -> Message:
        """Without an expiry that has passed: its broker would drop it without a word."""
        expiry = message.headers.expiry
        if expiry is None or expiry > now():
            return message
        self.counts["without their expiry"] += 1
        return replace(message, headers=replace(message.headers, expiry=None))

    def _through(self, row: ArchiveRow, hop: Hop, message: Message) -> Copy:
        target = hop.target
        if target is None or hop.rule:
            return Copy(row, hop, None, hop.reason)
        dialect = self._routers[row["endpoint"]].dialect
        try:
            return Copy(row, hop, self._outbox.make(message, hop, dialect))
        except TranslationError as error:
            return Copy(row, hop, None, str(error))

    def _send(self, copies: Sequence[Copy]) -> Iterator[tuple[Copy, str]]:
        groups: dict[str, list[Copy]] = {}
        for copy in copies:
            if copy.hop.target is not None:
                groups.setdefault(copy.hop.target.endpoint, []).append(copy)
        for endpoint, group in groups.items():
            settled = self._outbox.send(endpoint, [each.message for each in group if each.message])
            arrived = []
            for copy, answer in zip(group, settled, strict=True):
                if answer.outcome is Outcome.ACCEPTED:
                    arrived.append(copy)
                else:
                    self.counts["not sent"] += 1
                    yield copy, answer.reason or "no answer"
            self.counts["sent"] += len(arrived)
            at = now()
            self._outbox.record([_row(copy, at) for copy in arrived])


def _row(copy: Copy, at: int) -> Rows:
    """The delivered row of a replayed copy: a second attempt of the message it was."""
    row, hop, message = copy.row, copy.hop, copy.message
    assert message is not None  # noqa: S101  # it arrived
    assert hop.target is not None  # noqa: S101
    size, digest = fingerprint(message.payload)
    converted = hop.target.conversion is not None
    common: dict[str, Cell] = {
        "route": row["route"],
        "leg": Leg.DELIVERED.value,
        "endpoint": hop.target.endpoint,
        "system": hop.target.system,
        "target": hop.label,
        "name": message.address,
        "source_name": row["name"],
        "id": row["id"],
        "attempt": AGAIN,
        "time": at,
        "received": micros(row["received"] or row["time"]),
        "mode": int(message.headers.mode),
        "redelivered": True,
        "size": size,
        "hash": digest,
        "outcome": (Step.CONVERTED if converted else Step.ACCEPTED).value,
    }
    return Rows(1, common)


def micros(moment: datetime) -> int:
    """Microseconds since 1970-01-01 UTC."""
    return round(moment.timestamp() * 1_000_000)
