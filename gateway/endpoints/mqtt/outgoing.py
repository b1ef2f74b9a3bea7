"""Messages to PUBLISH packets; it refuses what MQTT or the broker's limits do not take."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack

from gateway.endpoints.mqtt.properties import encode_block, pack_length
from gateway.endpoints.mqtt.user_properties import unsendable
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import PLAIN, Headers, Message

KNOWN_TOPICS, KNOWN_HEADS = 32_768, 4_096  # how many are remembered
KNOWN_HEADERS = 10_000  # as many as the runtime adapts: an origin path differs with each name
SHORT = 256  # bytes of a topic or of properties that are worth remembering
LARGE = 16_384  # bytes of a payload that is better written by itself than copied
TOPIC_BYTES = 65_535
HEAD = 5  # bytes of the longest fixed header
EMPTY = b"\0"  # no properties


class Encoder:
    """Collects packets for one write; mutable for that, and it remembers topics and headers."""

    def __init__(self, settings: MqttSettings) -> None:
        self._five = settings.version == "5"
        self._granted = _granted(settings.qos)
        self._max_packet = settings.max_packet
        self._retain = True
        self._topics: dict[str, bytes] = {}
        self._heads: dict[int, bytes] = {}  # by size and first byte
        self._blocks: dict[tuple[int, bool], tuple[Headers, bytes]] = {}
        self._parts: list[bytes] = []
        self._pieces: list[bytes] = []
        self._now = 0
        self.size = 0

    def obey(self, qos: int, max_packet: int, *, retain: bool) -> None:
        """Lower our limits to the broker's."""
        self._granted = _granted(min(self._granted[-1], qos))
        self._max_packet = min(self._max_packet, max_packet)
        self._retain = retain

    def start(self, now: int) -> None:
        """A new batch; `now` in microseconds is what expiry is counted from."""
        self._now = now

    def needs_id(self, message: Message) -> bool:
        return self._granted[message.headers.mode] > 0

    def add(self, message: Message, packet_id: int) -> int:
        """Append the packet; `packet_id` when it was used, 0 for QoS 0.

        Raises:
            TranslationError: this message is not for MQTT, or not for this broker.
        """
        headers, payload = message.headers, message.payload
        text = False
        if payload.__class__ is not bytes:
            text = payload.__class__ is str
            payload = _as_bytes(payload)
        topic = self._topics.get(message.address)
        if topic is None:
            topic = self._learn(message.address)
        qos = self._granted[headers.mode]
        if headers.retained and not self._retain:
            raise unsendable("retain", "the broker keeps no retained messages")
        tail = packet_id.to_bytes(2, "big") if qos else b""
        if self._five or headers.expiry is not None:
            tail += self._properties(headers, text=text)
        size = len(topic) + len(tail) + len(payload)
        if size + HEAD > self._max_packet:
            raise unsendable(
                "packet-size", f"a packet of {size + HEAD} bytes, limit {self._max_packet}"
            )
        key = size << 4 | qos << 1 | headers.retained
        head = self._heads.get(key) or self._learn_head(key)
        self._parts += (head, topic, tail, payload)
        if len(payload) >= LARGE:
            self._part_from(payload)
        self.size += size
        return packet_id if qos else 0

    def take(self) -> list[bytes]:
        """All packets since the last call, in pieces to be written one after the other."""
        pieces = [*self._pieces, b"".join(self._parts)]
        self._parts.clear()
        self._pieces.clear()
        self.size = 0
        return pieces

    def _part_from(self, payload: bytes) -> None:
        """Make the last part, which is `payload`, a piece of its own."""
        self._parts.pop()
        self._pieces += (b"".join(self._parts), payload)
        self._parts.clear()

    def _properties(self, headers: Headers, *, text: bool) -> bytes:
        if not self._five:
            if headers.expiry is not None and headers.expiry <= self._now:
                raise unsendable("expired", "the message expired before it could be sent")
            return b""
        if headers is PLAIN and not text:
            return EMPTY
        key = (id(headers), text)
        known = self._blocks.get(key)
        if known is not None:
            return known[1]
        block = encode_block(headers, text=text, now=self._now)
        if headers.expiry is None and len(block) <= SHORT:
            if len(self._blocks) >= KNOWN_HEADERS:
                self._blocks.clear()
            self._blocks[key] = (headers, block)  # kept alive, so that its id stays its own
        return block

    def _learn_head(self, key: int) -> bytes:
        """A fixed header: the first byte, then the length of the rest."""
        head = bytes((0x30 | key & 15,)) + pack_length(key >> 4)
        if len(self._heads) >= KNOWN_HEADS:
            self._heads.clear()
        self._heads[key] = head
        return head

    def _learn(self, address: str) -> bytes:
        topic = _topic(address)
        if len(topic) <= SHORT:
            if len(self._topics) >= KNOWN_TOPICS:
                self._topics.clear()
            self._topics[address] = topic
        return topic


def _granted(qos: int) -> tuple[int, int, int]:
    """The QoS that a message of each delivery mode is sent with, where `qos` is the most."""
    return (0, min(1, qos), qos)


def _as_bytes(payload: object) -> bytes:
    if isinstance(payload, str):
        try:
            return payload.encode()
        except UnicodeEncodeError as error:
            raise unsendable("surrogate", "the text holds a lone surrogate") from error
    if isinstance(payload, Mapping):
        raise unsendable("payload-kind", "MQTT carries bytes or text, not a map")
    raise unsendable("payload-kind", f"MQTT carries bytes or text, not {type(payload)}")


def _topic(address: str) -> bytes:
    """A topic name with its length (MQTT 5.0, 4.7.1 and 4.7.3)."""
    if not address:
        raise unsendable("empty-name", "a topic name has at least one character")
    for character in "+#":
        if character in address:
            raise unsendable("wildcard-in-name", f"{character!r} in a topic name")
    if "\0" in address:
        raise unsendable("nul", "U+0000 in a topic name")
    try:
        raw = address.encode()
    except UnicodeEncodeError as error:
        raise unsendable("surrogate", "a lone surrogate in a topic name") from error
    if len(raw) > TOPIC_BYTES:
        raise unsendable("too-long", f"{len(raw)} bytes of topic name, limit {TOPIC_BYTES}")
    return pack(">H", len(raw)) + raw
