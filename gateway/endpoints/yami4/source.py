"""A YAMI4 source: one connection with one subscription, so that a message arrives once.

YAMI4 acknowledges nothing, so what is not settled is kept in memory, and comes again from there.
When nobody receives, nothing is read, and the broker's overflow policy takes over.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4.bodies import BodyReader, find_fault
from gateway.endpoints.yami4.link import Link, connect
from gateway.endpoints.yami4.unsettled import Unsettled
from gateway.errors import EndpointError, NotConnectedError, shown
from gateway.model.message import Message, Properties
from gateway.wire.yami4.frames import Packet, encode_message
from gateway.wire.yami4.messages import ID_SIZE, Heading, Kind, encode_request, read_header
from gateway.wire.yami4.parameters import EMPTY, encode_parameters

log = logging.getLogger(__name__)

PROBE = "_gateway.probe."  # tags that gateways publish to themselves begin with it
RAW_TAGS = "yami4.tags"  # property: a tag list that is no UTF-8, as it arrived
_UPDATE = b"update "
_TABLE_FULL = "Subscription table full."
_AGAIN = 0.2  # seconds between attempts to see our own subscription
_GLANCE = 0.05  # seconds between looks for messages to be tried again
_MOST_KEPT = 8_192
_LONGEST_KEPT = 1_024  # bytes of a header worth remembering


class Yami4Source:
    """Receives what a list of patterns selects; each `open` starts over."""

    def __init__(self, settings: Yami4Settings, subscriptions: Sequence[Subscription]) -> None:
        patterns = ",".join(subscription.pattern for subscription in subscriptions)
        if not subscriptions or find_fault(patterns):
            raise EndpointError(f"{settings.name}: no list of patterns: {shown(patterns)}")
        self._settings = settings
        self._patterns = patterns.encode()
        self._bodies = BodyReader()
        self._unsettled = Unsettled(settings.unsettled_bytes)
        self._link: Link | None = None
        self._early: list[Message] = []  # what arrived before anybody could receive
        self._size = 0  # bytes of the bodies in it, or in the batch being made
        self._start("")

    def _start(self, mark: str) -> None:
        """Forget what belongs to one connection; `mark` names the next one."""
        self._destination = f"gateway-{mark}".encode()
        self._probe = f"{PROBE}{mark}".encode()
        self._addresses: dict[bytes, tuple[str, Properties]] = {}  # by head of the header
        self._next_id = 1
        self._answers: dict[int, Heading] = {}
        self._asked: int | None = None  # id of the heartbeat without an answer
        self._probe_seen = False
        self._due = time.monotonic() + self._settings.heartbeat

    def open(self) -> None:
        self.close()
        self._unsettled.start_over()
        self._start(secrets.token_hex(4))
        self._link = link = connect(self._settings)
        try:
            self._subscribe(link)
        except BaseException:
            self.close()
            raise

    def receive(self, timeout: float) -> Batch | None:
        deadline = time.monotonic() + timeout
        while True:
            link = self._link
            if link is None:
                raise NotConnectedError(f"{self._settings.name}: not open")
            if (batch := self._unsettled.hand_out_again()) is not None:
                return batch
            messages, self._early = self._early or self._receive(link, deadline), []
            if messages:
                size, self._size = self._size, 0
                return self._unsettled.hand_out(messages, size)
            if time.monotonic() >= deadline:
                return None

    def _receive(self, link: Link, deadline: float) -> list[Message]:
        """Read once, for a while; ask after the broker when there was nothing."""
        now = time.monotonic()
        until = min(deadline, max(self._due, now))
        if not self._unsettled.is_idle:
            until = min(until, now + _GLANCE)
            if not self._unsettled.wait_for_room(max(until - now, 0)):
                return []
            now = time.monotonic()
        try:
            packets = link.read(until - now)
            if packets is not None:
                return self._sort(packets)
            self._beat(link)
        except NotConnectedError:
            self.close()
            raise
        return []

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _subscribe(self, link: Link) -> None:
        """Subscribe and see it work, or say why not."""
        deadline = time.monotonic() + self._settings.answer_timeout
        while True:
            answer = self._await(link, self._request_subscription(link), deadline)
            if answer.kind is Kind.EXCEPTION:
                reason = answer.reason.decode("utf-8", "replace")
                kind = NotConnectedError if reason == _TABLE_FULL else EndpointError
                raise kind(f"{self._settings.name}: subscription refused: {reason}")
            if not self._settings.probe:
                return
            self._await(link, self._ask(link), deadline)
            if self._probe_seen or self._early:
                return
            again = time.monotonic() + _AGAIN
            if again >= deadline:
                raise NotConnectedError(
                    f"{self._settings.name}: the broker took the subscription and does not serve"
                    " it; its table may be full, or it is warming up"
                )
            while (left := again - time.monotonic()) > 0:
                self._early += self._sort(link.read(left) or ())

    def _await(self, link: Link, message_id: int, deadline: float) -> Heading:
        while message_id not in self._answers:
            left = deadline - time.monotonic()
            if left <= 0:
                raise NotConnectedError(f"{self._settings.name}: the broker does not answer")
            self._early += self._sort(link.read(left) or ())
        self._asked = None
        return self._answers.pop(message_id)

    def _beat(self, link: Link) -> None:
        """Ask a broker that has been silent, and judge it by the last answer.

        Called only after a read that found nothing, so that no answer waits to be read.
        """
        now = time.monotonic()
        if self._asked is not None and self._asked in self._answers:
            self._asked = None
            self._due = now + self._settings.heartbeat
            if self._settings.probe and not self._probe_seen:
                log.warning("%s: lost an update; subscribing again", self._settings.name)
                self._request_subscription(link)
            self._answers.clear()
        elif now < self._due:
            return
        elif self._asked is not None:
            raise NotConnectedError(f"{self._settings.name}: the broker does not answer")
        else:
            self._asked = self._ask(link)
            self._due = now + self._settings.answer_timeout

    def _ask(self, link: Link) -> int:
        """Publish to ourselves, then ask for statistics: the update comes before the answer."""
        self._probe_seen = False
        if self._settings.probe:
            self._request(link, self._probe, b"publish", EMPTY)
        return self._request(link, b"stats", b"get", EMPTY)

    def _request_subscription(self, link: Link) -> int:
        patterns = self._patterns
        if self._settings.probe:
            patterns += b"," + self._probe
        body = encode_parameters({"destination_object": self._destination.decode()})
        return self._request(link, patterns, b"subscribe", body)

    def _request(self, link: Link, object_name: bytes, message_name: bytes, body: bytes) -> int:
        message_id = self._next_id
        self._next_id += 1
        header = encode_request(object_name, message_name, message_id)
        data = encode_message(message_id, header, body)
        if link.write(data, self._settings.answer_timeout) < len(data):
            raise NotConnectedError(f"{self._settings.name}: connection lost")
        return message_id

    def _sort(self, packets: Sequence[Packet]) -> list[Message]:
        """Return the updates among `packets`, and note the answers."""
        known, read = self._addresses, self._bodies.read
        messages: list[Message] = []
        size = 0
        for header, body in packets:
            found = known.get(header[:-ID_SIZE]) or self._learn(header)
            if found is None:
                continue
            address, marks = found
            payload, headers = read(body)
            if marks:
                headers = replace(headers, properties={**headers.properties, **marks})
            messages.append(Message(address, payload, headers))
            size += len(body)
        self._size += size
        return messages

    def _learn(self, header: bytes) -> tuple[str, Properties] | None:
        """Return the address of an update; anything else is noted and gives None."""
        found = read_header(header)
        if found is None:
            return None
        heading, message_id = found
        if heading.kind is not Kind.MESSAGE:
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
        canonical = encode_request(heading.object_name, heading.message_name, message_id)
        if header == canonical and len(header) <= _LONGEST_KEPT:
            if len(self._addresses) >= _MOST_KEPT:
                self._addresses.clear()
            self._addresses[header[:-ID_SIZE]] = address
        return address


def _read_tags(tags: bytes) -> tuple[str, Properties]:
    try:
        return tags.decode(), {}
    except UnicodeDecodeError:
        return tags.decode("utf-8", "backslashreplace"), {RAW_TAGS: tags}
