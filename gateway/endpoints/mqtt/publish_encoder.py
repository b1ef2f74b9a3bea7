"""Messages to PUBLISH packets; a message beyond the limits of MQTT or the broker is refused."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.endpoints.mqtt.session import BrokerLimits
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.dead_letter_rule import (
    EMPTY_NAME,
    EXPIRED,
    NUL,
    PACKET_SIZE,
    PAYLOAD_KIND,
    RETAIN,
    SURROGATE,
    TOO_LONG,
    WILDCARD_IN_NAME,
)
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import Headers, Message
from gateway.wire.mqtt.packet_fields import (
    MAX_TEXT,
    U16,
    encode_length,
    refuse_closing,
    unsendable_error,
)
from gateway.wire.mqtt.publish_properties import encode_properties, proof_mark

MAX_CACHED_TOPICS, MAX_CACHED_FIXED_HEADERS = 16 << 20, 1 << 20  # bytes
MAX_CACHED_PROPERTIES = 16 << 20  # bytes, with their headers
LARGE = 16_384  # bytes of a payload that is written separately instead of copied
MAX_FIXED_HEADER = 5  # bytes


class PublishEncoder:
    """Collects packets for one write, and caches encoded topics and properties.

    Mutable: used by one thread at a time.
    """

    def __init__(self, settings: MqttSettings, limits: BrokerLimits) -> None:
        self._five = settings.version == "5"
        qos = min(settings.qos, limits.qos)
        self._qos = (0, min(1, qos), qos)  # by delivery mode
        self._max_packet = min(settings.max_packet, limits.max_packet)
        self._retain = limits.retain
        self._topics: LimitedCache[str, bytes] = LimitedCache(MAX_CACHED_TOPICS)
        # by size and first byte
        self._fixed_headers: LimitedCache[int, bytes] = LimitedCache(MAX_CACHED_FIXED_HEADERS)
        # by id(), text and the length of the proof; a value keeps its headers, so that no others
        # get their id()
        self._properties: LimitedCache[tuple[int, bool, int], tuple[Headers, bytes]]
        self._properties = LimitedCache(MAX_CACHED_PROPERTIES)
        self._parts: list[bytes] = []
        self._pieces: list[bytes] = []
        self.now = 0  # microseconds, from which expiry is counted
        self.size = 0  # bytes since the last `take`

    def needs_id(self, message: Message) -> bool:
        """Return whether the message is sent with a packet id (QoS 1 or 2)."""
        return self._qos[message.headers.mode] > 0

    def add(self, message: Message, packet_id: int) -> int:
        """Append the packet of a message; return `packet_id`, or 0 for QoS 0.

        Raises:
            TranslationError: MQTT or this broker cannot carry the message.
        """
        headers, payload = message.headers, message.payload
        text = False
        if payload.__class__ is not bytes:
            text = payload.__class__ is str
            payload = _as_bytes(payload)
        topic = self._topics.get(message.address)
        if topic is None:
            topic = _topic(message.address)
            self._topics.add(message.address, topic, 2 * len(topic))
        qos = self._qos[headers.mode]
        if headers.retained and not self._retain:
            raise unsendable_error(RETAIN, "the broker keeps no retained messages")
        tail = packet_id.to_bytes(2, "big") if qos else b""
        if self._five:
            proof = message.proof
            known = self._properties.get((id(headers), text, len(proof)))
            tail += known[1] if known else self._encode_properties(headers, len(proof), text=text)
            tail += proof.encode()
        elif headers.expiry is not None and headers.expiry <= self.now:
            raise unsendable_error(EXPIRED, "the message expired before it could be sent")
        size = len(topic) + len(tail) + len(payload)
        if size + MAX_FIXED_HEADER > self._max_packet:
            raise unsendable_error(
                PACKET_SIZE,
                f"a packet of {size + MAX_FIXED_HEADER} bytes, limit {self._max_packet}",
            )
        key = size << 4 | qos << 1 | headers.retained
        fixed_header = self._fixed_headers.get(key) or self._encode_fixed_header(key)
        self._parts += (fixed_header, topic, tail, payload)
        if len(payload) >= LARGE:  # it is a piece of its own
            self._parts.pop()
            self._pieces += (b"".join(self._parts), payload)
            self._parts.clear()
        self.size += size
        return packet_id if qos else 0

    def take(self) -> list[bytes]:
        """Return all packets since the last call, in pieces to write one after the other."""
        pieces = [*self._pieces, b"".join(self._parts)]
        self._parts, self._pieces, self.size = [], [], 0
        return pieces

    def _encode_properties(self, headers: Headers, proof_size: int, *, text: bool) -> bytes:
        """Return the properties with their length, up to the text of a proof of this size.

        Messages with these headers differ in that text only.
        """
        encoded = encode_properties(headers, text=text, now=self.now)
        if proof_size:
            encoded += proof_mark(proof_size)
        encoded = encode_length(len(encoded) + proof_size) + encoded
        if headers.expiry is None and headers.is_shared:
            key = (id(headers), text, proof_size)
            self._properties.add(key, (headers, encoded), 4 * len(encoded))
        return encoded

    def _encode_fixed_header(self, key: int) -> bytes:
        """Return the first byte and the remaining length of a PUBLISH."""
        fixed_header = bytes((0x30 | key & 15,)) + encode_length(key >> 4)
        return self._fixed_headers.add(key, fixed_header, len(fixed_header))


def _as_bytes(payload: object) -> bytes:
    if isinstance(payload, str):
        try:
            return payload.encode()
        except UnicodeEncodeError as error:
            raise unsendable_error(SURROGATE, "the text holds a lone surrogate") from error
    kind = "a map" if isinstance(payload, Mapping) else type(payload)
    raise unsendable_error(PAYLOAD_KIND, f"MQTT carries bytes or text, not {kind}")


def _topic(address: str) -> bytes:
    """Return a topic name with its length (MQTT 5.0, 4.7.1 and 4.7.3)."""
    if not address:
        raise unsendable_error(EMPTY_NAME, "a topic name has at least one character")
    for character in "+#":
        if character in address:
            raise unsendable_error(WILDCARD_IN_NAME, f"{character!r} in a topic name")
    if "\0" in address:
        raise unsendable_error(NUL, "U+0000 in a topic name")
    try:
        raw = address.encode()
    except UnicodeEncodeError as error:
        raise unsendable_error(SURROGATE, "a lone surrogate in a topic name") from error
    refuse_closing(address, "topic name")
    if len(raw) > MAX_TEXT:
        raise unsendable_error(TOO_LONG, f"{len(raw)} bytes of topic name, limit {MAX_TEXT}")
    return U16.pack(len(raw)) + raw
