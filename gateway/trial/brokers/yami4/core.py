"""The options, the subscription table and the commands of the YAMI4 broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import count
from operator import is_
from typing import Final

from gateway.errors import WireError
from gateway.model.message import Value
from gateway.trial.brokers.serving import MemoryBudget
from gateway.trial.brokers.yami4.client import ClientConnection, SubscriptionRow
from gateway.trial.brokers.yami4.matching import PatternList, until_nul
from gateway.wire.yami4.frames import (
    DEFAULT_LIMITS,
    FrameLimits,
    Packet,
    encode_message,
    to_wire_id,
)
from gateway.wire.yami4.messages import (
    HeaderReader,
    MessageHeading,
    MessageKind,
    encode_exception,
    encode_id,
    encode_reply,
    request_head,
)
from gateway.wire.yami4.parameters import EMPTY, Long, decode_parameters, encode_parameters

log = logging.getLogger(__name__)


class OverflowPolicy(Enum):
    """Treatment of an update whose subscription's queue is full; the update is lost each time."""

    DROP_UPDATE = "drop_update"  # a confirmed publisher gets a reply
    REJECT_MESSAGE = "reject_message"  # a confirmed publisher gets an exception
    UNSUBSCRIBE = "unsubscribe"  # the subscription is removed; a confirmed publisher gets a reply


@dataclass(frozen=True, slots=True)
class Yami4BrokerOptions:
    max_subscriptions: int = 100
    max_client_queue: int = 10  # updates of one subscription that are not written yet
    overflow_policy: OverflowPolicy = OverflowPolicy.REJECT_MESSAGE
    warm_up: float = 0.0  # seconds after the start during which publishing is refused
    max_connections: int = 1_000
    max_list_items: int = 4_096  # tags of a message; patterns of a subscription
    max_peer_bytes: int = 64 << 20  # unwritten bytes of one connection
    max_total_bytes: int = 256 << 20  # unwritten and incomplete bytes of all connections
    frames: FrameLimits = DEFAULT_LIMITS


DEFAULT_OPTIONS: Final = Yami4BrokerOptions()


QUEUE_OVERFLOW = b"Message queue overflow"
TABLE_FULL = b"Subscription table full."
WARMING_UP = b"Broker is warming up."
TOO_MANY_ITEMS = b"Too many tags or patterns."
NO_FORWARDING = b"Forwarding is not supported."
_FORWARD_DESTINATION = b"*"  # the destination by which the reference broker forwards
_MAX_CACHED_ROUTES = 4_096
_MAX_CACHED_TAGS = 1_024  # bytes

UpdateTargets = Sequence[tuple[SubscriptionRow, bytes]]  # each with the head of its update's header


class BrokerCore:
    """The state of the broker.

    Mutable: owned by the broker's event loop; it changes with each message.
    """

    def __init__(self, options: Yami4BrokerOptions) -> None:
        self.warming_up = options.warm_up > 0
        self.memory = MemoryBudget(options.max_total_bytes)
        self.clients: set[ClientConnection] = set()
        self.numbers = count(1)  # of the clients
        self.subscriptions: list[SubscriptionRow] = []
        self.incoming = self.outgoing = 0
        self.options = options
        self._reader = HeaderReader()
        self._targets: dict[bytes, UpdateTargets] = {}
        self._posted, self._updates = count(1), count(1)  # their ids
        self._posted_to: dict[ClientConnection, None] = {}

    def receive(self, client: ClientConnection, packets: Sequence[Packet]) -> None:
        """Handle messages from a client, and write the answers and updates that they lead to."""
        read = self._reader.read
        for header, body in packets:
            if client.failed:
                break
            found = read(header)
            if found is None or found[0].kind is not MessageKind.MESSAGE:
                continue  # the reference broker ignores them silently
            heading, message_id = found
            match heading.message_name:
                case b"publish":
                    self._publish(heading.object_name, body)
                case b"publish_confirm":
                    refusal = self._publish(heading.object_name, body)
                    self._answer(client, message_id, refusal)
                case b"subscribe":
                    self._answer(client, message_id, self._subscribe(client, heading, body))
                case b"get" | b"get-details" if heading.object_name == b"stats":
                    details = heading.message_name == b"get-details"
                    self._post(client, encode_reply(message_id), self._statistics(details=details))
        peers = list(self._posted_to)
        self._posted_to.clear()
        for each in peers:
            each.flush()

    def drop(self, client: ClientConnection) -> None:
        """Remove a client and its subscriptions."""
        self.clients.discard(client)
        self._posted_to.pop(client, None)
        self._remove(lambda row: row.client is client)

    def _remove(self, unwanted: Callable[[SubscriptionRow], bool]) -> None:
        self.subscriptions = [row for row in self.subscriptions if not unwanted(row)]
        self._targets.clear()

    def _answer(self, client: ClientConnection, message_id: int, refusal: bytes) -> None:
        header = encode_exception(message_id, refusal) if refusal else encode_reply(message_id)
        if refusal:
            log.info(
                "yami4 broker: refused to %s: %s", client.location, refusal.decode(errors="replace")
            )
        self._post(client, header, EMPTY)

    def _post(self, client: ClientConnection, header: bytes, body: bytes) -> None:
        client.post(encode_message(to_wire_id(next(self._posted)), header, body))
        self._posted_to[client] = None
        if client.output.unwritten > self.options.max_peer_bytes or self.memory.is_full:
            client.fail("it does not read its answers")

    def _subscribe(self, client: ClientConnection, heading: MessageHeading, body: bytes) -> bytes:
        """Add a subscription unless it exists; return the reason of a refusal, or nothing."""
        try:
            destination = decode_parameters(body, errors="surrogateescape")["destination_object"]
        except WireError:
            return b"Not enough space or not enough data in the buffer."
        except KeyError:
            return b"No such name."
        if not isinstance(destination, str):
            return b"Bad type."
        return self._add(
            client, until_nul(heading.object_name), destination.encode("utf-8", "surrogateescape")
        )

    def _add(self, client: ClientConnection, text: bytes, destination: bytes) -> bytes:
        if destination == _FORWARD_DESTINATION:
            return NO_FORWARDING
        if text.count(b",") >= self.options.max_list_items:
            return TOO_MANY_ITEMS
        for row in self.subscriptions:
            if (row.client, row.patterns.text, row.destination) == (client, text, destination):
                return b""
        if len(self.subscriptions) >= self.options.max_subscriptions:
            return TABLE_FULL
        self.subscriptions.append(SubscriptionRow(PatternList(text), destination, client))
        self._targets.clear()
        return b""

    def _publish(self, name: bytes, body: bytes) -> bytes:
        """Send an update to each matching subscription; return why not, or nothing."""
        if self.warming_up:
            return WARMING_UP
        targets = self._targets.get(name)
        if targets is None:
            tags = until_nul(name)
            if tags.count(b",") >= self.options.max_list_items:
                return TOO_MANY_ITEMS
            targets = self._find_targets(name, tags)
        self.incoming += 1
        overflows = 0
        for subscription, head in targets:
            self.outgoing += 1
            if self._is_full(subscription):
                overflows += 1
                if self.options.overflow_policy is OverflowPolicy.UNSUBSCRIBE:
                    self._remove(partial(is_, subscription))
            else:
                self._update(subscription, head, body)
        if overflows and self.options.overflow_policy is OverflowPolicy.REJECT_MESSAGE:
            return QUEUE_OVERFLOW
        return b""

    def _find_targets(self, name: bytes, tags: bytes) -> UpdateTargets:
        targets = tuple(
            (row, request_head(row.destination, b"update " + tags))
            for row in self.subscriptions
            if row.patterns.matches(tags)
        )
        if len(name) <= _MAX_CACHED_TAGS:
            if len(self._targets) >= _MAX_CACHED_ROUTES:
                self._targets.clear()
            self._targets[name] = targets
        return targets

    def _is_full(self, subscription: SubscriptionRow) -> bool:
        """Return whether the queue is full, after one more attempt to write it."""
        if not self._is_over(subscription):
            return False
        subscription.client.flush()
        return self._is_over(subscription)

    def _is_over(self, subscription: SubscriptionRow) -> bool:
        return (
            subscription.pending >= self.options.max_client_queue
            or subscription.client.output.unwritten >= self.options.max_peer_bytes
            or self.memory.is_full
        )

    def _update(self, subscription: SubscriptionRow, head: bytes, body: bytes) -> None:
        header = head + encode_id(next(self._updates))
        data = encode_message(to_wire_id(next(self._posted)), header, body)
        subscription.client.post(data, subscription)
        subscription.sent_messages += 1
        subscription.sent_bytes += len(data)
        self._posted_to[subscription.client] = None

    def _statistics(self, *, details: bool) -> bytes:
        values: dict[str, Value] = {
            "total_incoming": Long(self.incoming),
            "total_outgoing": Long(self.outgoing),
        }
        rows = self.subscriptions
        if details and rows:
            limit = self.options.max_client_queue
            values["locations"] = [row.client.location for row in rows]
            values["overflows"] = [row.pending >= limit for row in rows]
            values["sent_messages"] = [Long(row.sent_messages) for row in rows]
            values["sent_bytes"] = [Long(row.sent_bytes) for row in rows]
        return encode_parameters(values)
