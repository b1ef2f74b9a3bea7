"""Sends archived messages again through the current mapping and records the delivered ones.

Messages are read, sent and answered in batches, in the order of their receipt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, TypeAlias

from gateway.archive.journal.records import Rows
from gateway.clock import microseconds
from gateway.config.load import Configuration
from gateway.errors import ArchiveError, EndpointError, TranslationError
from gateway.model.message import Message
from gateway.model.outcome import Outcome
from gateway.night.replay.restored_message import has_redacted_values, restore
from gateway.night.replay.sender import (
    SEND_MESSAGES,
    ReplaySender,
    delivered_row,
    without_past_expiry,
)
from gateway.routing.router import Delivery

REPLAY_ATTEMPT: Final = 2  # attempt of a replayed delivery; the reconciliation reads a redelivery

ArchiveRow: TypeAlias = Mapping[str, Any]
Targets: TypeAlias = Mapping[bytes, Collection[str]]  # target labels by message id


@dataclass(frozen=True, slots=True)
class ReplayChoice:
    """The copies to send: those in `wanted`, or all, without those in `recovered`.

    `recovered` are the copies that earlier replays delivered.
    """

    wanted: Targets | None = None
    recovered: Targets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplayCopy:
    """The current copy of one message for one target.

    `message` is None if it cannot be sent; `reason` then says why.
    """

    row: ArchiveRow
    delivery: Delivery
    message: Message | None
    reason: str = ""


class Replay:
    """Plans and sends the archived messages of one route.

    Mutable: owned by one thread; holds open sinks and an archive until `close`.
    """

    def __init__(self, configuration: Configuration, route: str) -> None:
        """Replay messages that `route` received.

        Raises:
            EndpointError: the configuration has no such route.
        """
        routes = [each for each in configuration.routes if each.name == route]
        if not routes:
            known = ", ".join(sorted({each.name for each in configuration.routes}))
            raise EndpointError(f"replay: no route {route!r} in the configuration; it has {known}")
        self._configuration = configuration
        self._sender = ReplaySender(configuration, "replay", routes)
        self.counts: Counter[str] = Counter()

    def plan(self, row: ArchiveRow, choice: ReplayChoice) -> Iterator[ReplayCopy]:
        """The chosen copies of one row; those that are recovered are only counted."""
        message, fault = Message(row["name"], b""), ""
        try:
            message = restore(row)
        except ArchiveError as error:
            fault = str(error)
        labels = {self._configuration.present_label(each): each for each in row["targets"] or ()}
        matches = self._sender.matches(self._source(row), message)
        made = [  # a target that has another name keeps its label in the archive
            replace(delivery, label=labels.get(delivery.label, delivery.label))
            for match in matches
            for delivery in match.deliveries
        ]
        if choice.wanted is not None:
            made = [each for each in made if each.label in choice.wanted[row["id"]]]
        if not made:
            reason = "the route does not take it any more"
            yield ReplayCopy(row, Delivery(None, None, ""), None, reason)
            return
        recovered = choice.recovered.get(row["id"], ())
        deliveries = [each for each in made if each.label not in recovered]
        self.counts["recovered"] += len(made) - len(deliveries)
        if not deliveries:
            return
        self.counts["without a payload"] += row["payload"] is None
        if fault:
            yield from (ReplayCopy(row, each, None, fault) for each in deliveries)
            return
        message = self._without_past_expiry(message)
        self.counts["without redacted values"] += has_redacted_values(row)
        for delivery in deliveries:
            yield self._copy(row, delivery, message)

    def send(
        self, rows: Iterable[ArchiveRow], choice: ReplayChoice
    ) -> Iterator[tuple[ReplayCopy, str]]:
        """Send the rows and count; yield each copy that was not delivered, with the reason.

        Raises:
            GatewayError: an endpoint cannot be opened, or the archive is not writable.
        """
        remaining = iter(rows)
        while batch := list(islice(remaining, SEND_MESSAGES)):
            copies = [copy for row in batch for copy in self.plan(row, choice)]
            for copy in copies:
                if copy.message is None:
                    self.counts["not sent"] += 1
                    yield copy, copy.reason
            yield from self._send([copy for copy in copies if copy.message is not None])

    def close(self) -> None:
        self._sender.close()

    def _source(self, row: ArchiveRow) -> str:
        return self._configuration.present_name(row["endpoint"])

    def _without_past_expiry(self, message: Message) -> Message:
        found = without_past_expiry(message)
        self.counts["without their expiry"] += found is not message
        return found

    def _copy(self, row: ArchiveRow, delivery: Delivery, message: Message) -> ReplayCopy:
        if delivery.target is None or delivery.rule:
            return ReplayCopy(row, delivery, None, delivery.reason)
        source, ids = self._source(row), (row["id"], row["trace"])
        try:
            return ReplayCopy(row, delivery, self._sender.make(message, delivery, source, *ids))
        except TranslationError as error:
            return ReplayCopy(row, delivery, None, str(error))

    def _send(self, copies: Sequence[ReplayCopy]) -> Iterator[tuple[ReplayCopy, str]]:
        groups: dict[str, list[ReplayCopy]] = {}
        for copy in copies:
            if copy.delivery.target is not None:
                groups.setdefault(copy.delivery.target.endpoint, []).append(copy)
        for endpoint, group in groups.items():
            settled = self._sender.send(endpoint, [each.message for each in group if each.message])
            answered = list(zip(group, settled, strict=True))
            delivered = [copy for copy, answer in answered if answer.outcome is Outcome.ACCEPTED]
            self._sender.record([_row(copy) for copy in delivered])  # before a caller stops
            self.counts["sent"] += len(delivered)
            for copy, answer in answered:
                if answer.outcome is not Outcome.ACCEPTED:
                    self.counts["not sent"] += 1
                    yield copy, answer.reason or "no answer"


def _row(copy: ReplayCopy) -> Rows:
    """The delivered row of a copy: a second attempt of the archived message."""
    row, delivery, message = copy.row, copy.delivery, copy.message
    assert message is not None  # noqa: S101  # it was delivered
    assert delivery.target is not None  # noqa: S101
    return delivered_row(
        message,
        converted=delivery.target.conversion is not None,
        route=row["route"],
        endpoint=delivery.target.endpoint,
        system=delivery.target.system,
        target=delivery.label,
        source_name=row["name"],
        fields=delivery.fields or None,
        id=row["id"],
        trace=row["trace"],
        attempt=REPLAY_ATTEMPT,
        received=microseconds(row["received"] or row["time"]),
        redelivered=True,
    )
