"""What the YAMI4 broker does with a message; the sockets are the server's business."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.brokers.yami4.matching import PatternList, until_nul
from gateway.brokers.yami4.options import BrokerOptions, OverflowPolicy
from gateway.brokers.yami4.peer import Memory, Peer, Subscription
from gateway.errors import WireError
from gateway.model.message import Value
from gateway.wire.yami4.frames import Packet, encode_message, to_wire_id
from gateway.wire.yami4.messages import (
    HeaderReader,
    Heading,
    Kind,
    encode_exception,
    encode_id,
    encode_reply,
    request_head,
)
from gateway.wire.yami4.parameters import EMPTY, Long, decode_parameters, encode_parameters

QUEUE_OVERFLOW = b"Message queue overflow"
TABLE_FULL = b"Subscription table full."
WARMING_UP = b"Broker is warming up."
TOO_MANY_ITEMS = b"Too many tags or patterns."
NO_FORWARDING = b"Forwarding is not supported."
_FORWARD = b"*"  # a destination the reference broker forwards to
_ROUTES_KEPT = 4_096
_LONGEST_KEPT = 1_024  # bytes of a tag list worth remembering

Route = Sequence[tuple[Subscription, bytes]]  # with the head of the update's header


class Core:
    """The subscription table and the commands; it changes with every message."""

    def __init__(self, options: BrokerOptions) -> None:
        self.warming_up = False
        self.memory = Memory(options.max_total_bytes)
        self.subscriptions: list[Subscription] = []
        self.incoming = self.outgoing = 0
        self._options = options
        self._reader = HeaderReader()
        self._routes: dict[bytes, Route] = {}
        self._posted = 0
        self._update_id = 0
        self._touched: dict[Peer, None] = {}

    def receive(self, peer: Peer, packets: Sequence[Packet]) -> None:
        """Act on messages from `peer`; answers and updates are posted, not yet written."""
        read = self._reader.read
        for header, body in packets:
            found = read(header)
            if found is None or found[0].kind is not Kind.MESSAGE:
                continue  # the reference ignores them without a word
            heading, message_id = found
            match heading.message_name:
                case b"publish":
                    self._publish(heading.object_name, body)
                case b"publish_confirm":
                    refusal = self._publish(heading.object_name, body)
                    self._answer(peer, message_id, refusal)
                case b"subscribe":
                    self._answer(peer, message_id, self._subscribe(peer, heading, body))
                case b"get" | b"get-details" if heading.object_name == b"stats":
                    details = heading.message_name == b"get-details"
                    self._post(peer, encode_reply(message_id), self._statistics(details=details))

    def touched(self) -> list[Peer]:
        """The peers that something was posted to since the last call."""
        peers = list(self._touched)
        self._touched.clear()
        return peers

    def drop(self, peer: Peer) -> None:
        """Forget a peer and its subscriptions."""
        self._touched.pop(peer, None)
        kept = [row for row in self.subscriptions if row.peer is not peer]
        if len(kept) != len(self.subscriptions):
            self.subscriptions = kept
            self._routes.clear()

    def _answer(self, peer: Peer, message_id: int, refusal: bytes) -> None:
        header = encode_exception(message_id, refusal) if refusal else encode_reply(message_id)
        self._post(peer, header, EMPTY)

    def _post(self, peer: Peer, header: bytes, body: bytes) -> None:
        self._posted += 1
        peer.post(encode_message(to_wire_id(self._posted), header, body))
        self._touched[peer] = None
        if peer.unwritten > self._options.max_peer_bytes or self.memory.is_full:
            peer.failed = True  # it never reads its answers

    def _subscribe(self, peer: Peer, heading: Heading, body: bytes) -> bytes:
        """Add a row, or refresh it when it is there; returns why not."""
        try:
            destination = decode_parameters(body, errors="surrogateescape")["destination_object"]
        except WireError:
            return b"Not enough space or not enough data in the buffer."
        except KeyError:
            return b"No such name."
        if not isinstance(destination, str):
            return b"Bad type."
        return self._add(
            peer, until_nul(heading.object_name), destination.encode("utf-8", "surrogateescape")
        )

    def _add(self, peer: Peer, text: bytes, destination: bytes) -> bytes:
        if destination == _FORWARD:
            return NO_FORWARDING
        if text.count(b",") >= self._options.max_list_items:
            return TOO_MANY_ITEMS
        for row in self.subscriptions:
            if (row.peer, row.patterns.text, row.destination) == (peer, text, destination):
                return b""
        if len(self.subscriptions) >= self._options.max_subscriptions:
            return TABLE_FULL
        self.subscriptions.append(Subscription(PatternList(text), destination, peer))
        self._routes.clear()
        return b""

    def _publish(self, name: bytes, body: bytes) -> bytes:
        """Send an update to every subscription that matches; returns what to tell a publisher."""
        if self.warming_up:
            return WARMING_UP
        route = self._routes.get(name)
        if route is None:
            tags = until_nul(name)
            if tags.count(b",") >= self._options.max_list_items:
                return TOO_MANY_ITEMS
            route = self._find_route(name, tags)
        self.incoming += 1
        overflows = 0
        for subscription, head in route:
            self.outgoing += 1
            if self._is_full(subscription):
                overflows += 1
                self._overflow(subscription)
            else:
                self._update(subscription, head, body)
        if overflows and self._options.overflow_policy is OverflowPolicy.REJECT_MESSAGE:
            return QUEUE_OVERFLOW
        return b""

    def _find_route(self, name: bytes, tags: bytes) -> Route:
        route = tuple(
            (row, request_head(row.destination, b"update " + tags))
            for row in self.subscriptions
            if row.patterns.matches(tags)
        )
        if len(name) <= _LONGEST_KEPT:
            if len(self._routes) >= _ROUTES_KEPT:
                self._routes.clear()
            self._routes[name] = route
        return route

    def _is_full(self, subscription: Subscription) -> bool:
        """A queue counts as full only after one more try to write it."""
        options, peer = self._options, subscription.peer
        if subscription.pending < options.max_client_queue and self._has_room(peer):
            return False
        peer.flush()
        return subscription.pending >= options.max_client_queue or not self._has_room(peer)

    def _has_room(self, peer: Peer) -> bool:
        return peer.unwritten < self._options.max_peer_bytes and not self.memory.is_full

    def _overflow(self, subscription: Subscription) -> None:
        if self._options.overflow_policy is OverflowPolicy.UNSUBSCRIBE:
            self.subscriptions = [row for row in self.subscriptions if row is not subscription]
            self._routes.clear()

    def _update(self, subscription: Subscription, head: bytes, body: bytes) -> None:
        self._posted += 1
        self._update_id += 1
        data = encode_message(to_wire_id(self._posted), head + encode_id(self._update_id), body)
        subscription.peer.post(data, subscription)
        subscription.sent_messages += 1
        subscription.sent_bytes += len(data)
        self._touched[subscription.peer] = None

    def _statistics(self, *, details: bool) -> bytes:
        values: dict[str, Value] = {
            "total_incoming": Long(self.incoming),
            "total_outgoing": Long(self.outgoing),
        }
        rows = self.subscriptions
        if details and rows:
            limit = self._options.max_client_queue
            values["locations"] = [row.peer.location for row in rows]
            values["overflows"] = [row.pending >= limit for row in rows]
            values["sent_messages"] = [Long(row.sent_messages) for row in rows]
            values["sent_bytes"] = [Long(row.sent_bytes) for row in rows]
        return encode_parameters(values)
