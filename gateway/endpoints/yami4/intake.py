"""One connection of a YAMI4 source, with one subscription, so that each message arrives once.

While the queue is full nothing is read, and the broker's overflow policy applies.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Continuity
from gateway.endpoints.received_queue import MAX_BATCH, ReceivedQueue
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.source_shell import not_open
from gateway.endpoints.yami4.bodies import BodyReader
from gateway.endpoints.yami4.connection import Yami4Connection, connect
from gateway.errors import NotConnectedError, SubscriptionRefusedError
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import NO_HEADERS, DroppedPayload, Message, Properties
from gateway.wire.yami4.frames import Packet, encode_message
from gateway.wire.yami4.messages import (
    ID_SIZE,
    MessageHeading,
    MessageKind,
    encode_request,
    read_header,
)
from gateway.wire.yami4.parameters import EMPTY, encode_parameters

log = logging.getLogger(__name__)

PROBE: Final = "_gateway.probe."  # prefix of the tags that gateways publish to themselves
RAW_TAGS: Final = "yami4.tags"  # property: a tag list that is not UTF-8, as it arrived
_UPDATE: Final = b"update "
_TABLE_FULL: Final = "Subscription table full."
_PROBE_INTERVAL: Final = 0.2  # seconds between attempts to see our own subscription work
_RETRY_CHECK_INTERVAL: Final = 0.05  # seconds between checks for retried messages
_MAX_CACHED: Final = 4 << 20  # bytes of addresses


class Yami4Intake:
    """An intake (`endpoints.source_shell`) of what `patterns` selects, into `queue`.

    Mutable: owned by the receiving thread; any thread may close.
    """

    address = ""  # the settings have one

    def __init__(
        self,
        settings: Yami4Settings,
        patterns: str,
        queue: ReceivedQueue[Message],
        continuity: Continuity,
    ) -> None:
        self._settings, self._queue, self._continuity = settings, queue, continuity
        self._connection: Yami4Connection | None = None
        mark = secrets.token_hex(4)
        self._patterns = patterns.encode()
        self._destination = f"gateway-{mark}".encode()
        self._probe = f"{PROBE}{mark}".encode()
        self._bodies = BodyReader()
        # by header without its id
        self._addresses: LimitedCache[bytes, tuple[str, Properties]] = LimitedCache(_MAX_CACHED)
        self._next_id = 1
        self._answers: dict[int, MessageHeading] = {}  # by message id
        self._asked: int | None = None  # id of the heartbeat without an answer
        self._last_asked = 0  # id of the one whose answer ends the intake
        self._probe_seen = self._update_seen = False
        self._asked_at = self._served_at = 0  # microseconds; when a probe was sent that came back
        self._heartbeat_due = time.monotonic() + settings.heartbeat

    @property
    def ended(self) -> bool:
        return self._connection is None or self._queue.ended

    def open(self) -> None:
        connection = self._connection = connect(self._settings)
        self._subscribe(connection)
        self._served_at = self._asked_at
        self._continuity.heard = self._continuity.clock()

    def receive(self, timeout: float) -> Batch | None:
        deadline = time.monotonic() + timeout
        while True:
            connection = self._connection
            if connection is None:
                raise not_open(self._settings.name)
            if (batch := self._queue.take(MAX_BATCH, 0)) is not None:
                return batch
            self._receive(connection, deadline)
            if time.monotonic() >= deadline:
                return self._queue.take(MAX_BATCH, 0)

    def end(self) -> None:
        if self._connection is not None:
            self._asked = self._last_asked = self._ask(self._connection)
            self._heartbeat_due = time.monotonic() + self._settings.answer_timeout

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _receive(self, connection: Yami4Connection, deadline: float) -> None:
        """Read once into the queue when it has room; check the broker when nothing arrived."""
        now = time.monotonic()
        until = min(deadline, max(self._heartbeat_due, now))
        if self._queue.held:
            until = min(until, now + _RETRY_CHECK_INTERVAL)
            if not self._queue.wait_for_room(max(until - now, 0), or_retried=True):
                return
            now = time.monotonic()
        try:
            packets = connection.read(until - now)
            if packets is not None:
                if skipped := connection.take_skipped():
                    reason = "messages longer than `max_message` were dropped here"
                    self._continuity.report_loss(reason, skipped)
                self._continuity.heard = self._continuity.clock()
                if self._asked is not None:  # its answer comes behind what is under way
                    self._heartbeat_due = time.monotonic() + self._settings.answer_timeout
                self._decode(packets)
                if self._last_asked in self._answers:
                    self._queue.end()
            else:
                self._check_broker(connection)
        except NotConnectedError:
            self.close()
            raise

    def _subscribe(self, connection: Yami4Connection) -> None:
        """Subscribe and check that the subscription works.

        Raises:
            EndpointError: the broker refuses the subscription.
            NotConnectedError: the subscription does not work now.
        """
        name, held = self._settings.name, self._queue.held
        deadline = time.monotonic() + self._settings.answer_timeout
        while True:
            request = self._request_subscription(connection)
            answer = self._await(connection, request, deadline, held)
            if answer.kind is MessageKind.EXCEPTION:
                reason = answer.reason.decode("utf-8", "replace")
                kind = NotConnectedError if reason == _TABLE_FULL else SubscriptionRefusedError
                raise kind(f"{name}: subscription refused: {reason}")
            if not self._settings.probe:
                return
            self._await(connection, self._ask(connection), deadline, held)
            next_attempt = time.monotonic() + _PROBE_INTERVAL
            while not (self._probe_seen or self._update_seen):
                if next_attempt >= deadline:
                    raise NotConnectedError(
                        f"{name}: the broker accepted the subscription and does not serve it; its"
                        " table may be full, or it is warming up"
                    )
                if (left := next_attempt - time.monotonic()) <= 0:
                    break
                self._decode(connection.read(left) or ())
            else:
                return

    def _await(
        self, connection: Yami4Connection, message_id: int, deadline: float, held: int
    ) -> MessageHeading:
        """Return the answer to a request; nobody takes messages yet, so a window is the most.

        `held` is what the queue has of earlier connections.
        """
        while message_id not in self._answers:
            if self._queue.held - held >= self._settings.receive_window_bytes:
                reason = "messages fill the window before the broker answers"
                raise NotConnectedError(f"{self._settings.name}: {reason}")
            left = deadline - time.monotonic()
            if left <= 0:
                raise NotConnectedError(f"{self._settings.name}: the broker does not answer")
            self._decode(connection.read(left) or ())
        return self._answers.pop(message_id)

    def _check_broker(self, connection: Yami4Connection) -> None:
        """Send a heartbeat to a silent broker, and raise when the last one has no answer.

        It is called only after a read that found nothing, so that no answer waits to be read.
        """
        now = time.monotonic()
        if self._asked is not None and self._asked in self._answers:
            self._asked = None
            self._heartbeat_due = now + self._settings.heartbeat
            if self._settings.probe and not self._probe_seen:
                log.warning("%s: lost an update; subscribing again", self._settings.name)
                reason = "the broker dropped an update of the gateway itself"
                self._continuity.report_loss(reason, since=self._served_at)
                self._request_subscription(connection)
            else:
                self._served_at = self._asked_at
            self._answers.clear()
        elif now < self._heartbeat_due:
            return
        elif self._asked is not None:
            raise NotConnectedError(f"{self._settings.name}: the broker does not answer")
        else:
            self._asked = self._ask(connection)
            self._heartbeat_due = now + self._settings.answer_timeout

    def _ask(self, connection: Yami4Connection) -> int:
        """Publish the probe, then ask for statistics; the update comes before the answer."""
        self._probe_seen, self._asked_at = False, self._continuity.clock()
        if self._settings.probe:
            self._request(connection, self._probe, b"publish", EMPTY)
        return self._request(connection, b"stats", b"get", EMPTY)

    def _request_subscription(self, connection: Yami4Connection) -> int:
        patterns = self._patterns
        if self._settings.probe:
            patterns += b"," + self._probe
        body = encode_parameters({"destination_object": self._destination.decode()})
        return self._request(connection, patterns, b"subscribe", body)

    def _request(
        self, connection: Yami4Connection, object_name: bytes, message_name: bytes, body: bytes
    ) -> int:
        message_id = self._next_id
        self._next_id += 1
        header = encode_request(object_name, message_name, message_id)
        data = encode_message(message_id, header, body)
        if connection.write(data, self._settings.answer_timeout) < len(data):
            raise NotConnectedError(f"{self._settings.name}: connection lost")
        return message_id

    def _decode(self, packets: Sequence[Packet]) -> None:
        """Put the updates among `packets` into the queue, and note the answers."""
        known, read = self._addresses, self._bodies.read
        messages: list[Message] = []
        for header, body in packets:
            found = known.get(header[:-ID_SIZE]) or self._read_address(header)
            if found is None:
                continue
            address, properties = found
            is_dropped = isinstance(body, DroppedPayload)
            payload, headers, proof = (body, NO_HEADERS, "") if is_dropped else read(body)
            if properties:
                headers = replace(headers, properties={**headers.properties, **properties})
            messages.append(Message(address, payload, headers, proof))
        if messages:
            self._update_seen = True
            self._queue.put(messages)

    def _read_address(self, header: bytes) -> tuple[str, Properties] | None:
        """Return the address of an update and its properties; note any other packet."""
        found = read_header(header)
        if found is None:
            return None
        heading, message_id = found
        if heading.kind is not MessageKind.MESSAGE:
            if 0 < message_id < self._next_id:
                self._answers[message_id] = heading
            return None
        tags = heading.message_name.removeprefix(_UPDATE)
        if heading.object_name != self._destination or tags == heading.message_name:
            return None
        if tags.startswith(PROBE.encode()) and b"," not in tags:
            self._probe_seen |= tags == self._probe
            return None
        address = _read_tags(tags)
        if header == encode_request(heading.object_name, heading.message_name, message_id):
            self._addresses.add(header[:-ID_SIZE], address, 2 * len(header))
        return address


def _read_tags(tags: bytes) -> tuple[str, Properties]:
    try:
        return tags.decode(), {}
    except UnicodeDecodeError:
        return tags.decode("utf-8", "backslashreplace"), {RAW_TAGS: tags}
