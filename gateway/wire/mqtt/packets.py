"""The traffic packets of MQTT, bytes to values and back: PUBLISH and its acknowledgements.

Packets of the session (CONNACK, SUBACK, DISCONNECT) are passed on whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from struct import Struct, pack, unpack_from

from gateway.errors import WireError
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import DroppedPayload, Headers, Message, Payload
from gateway.model.proof_text import cut_proof, is_shared
from gateway.wire.mqtt.packet_fields import decode_length, decode_utf8, encode_length
from gateway.wire.mqtt.publish_properties import (
    HEADERS_BY_FLAGS,
    PROOF_MARKS,
    PROOF_NAME,
    decode_headers,
)

PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, PINGRESP = 3, 4, 5, 6, 7, 13  # packet types
PUBACK_PREFIX = 0x4002_0000  # a successful PUBACK without its packet id
ACK_PREFIXES = {0: 0, 1: PUBACK_PREFIX, 2: 0x5002_0000}  # QoS -> PUBACK or PUBREC without the id
PINGREQ = b"\xc0\x00"
MAX_CACHED_TOPICS, MAX_CACHED_HEADERS = 16 << 20, 16 << 20  # bytes
LARGE = 16_384  # bytes of a packet that is not to be copied twice
MAX_PACKET = 268_435_460  # bytes (MQTT 5.0, 2.1.4)
_TOO_SHORT = "mqtt: a PUBLISH is shorter than its fields or has QoS 3"
_ID_BYTES = (0, 2, 2, 1 << 28)  # by QoS; no packet has room for QoS 3 (MQTT 5.0, 3.3.1.2)
_START = Struct(">BBH").unpack_from  # of a PUBLISH: first byte, one-byte length, topic length


@dataclass(slots=True)
class DecodedPackets:
    """The packets of one block of bytes.

    `acks` has an entry per message: its PUBACK or PUBREC as a 32-bit number, 0 for QoS 0.
    Mutable: filled while the block is decoded.
    """

    messages: list[Message] = field(default_factory=list)
    acks: list[int] = field(default_factory=list)
    acked_ids: list[int] = field(default_factory=list)  # packet ids of successful PUBACKs
    responses: list[tuple[int, int, int]] = field(default_factory=list)  # type, packet id, reason
    session: list[bytes] = field(default_factory=list)  # whole packets
    pongs: int = 0  # answers to a PINGREQ
    has_special: bool = False  # a message is retained or of QoS 2


class PacketDecoder:
    """Takes bytes in any slices and returns the packets that they complete.

    `now` gives microseconds since 1970; it is called only for a message with an expiry interval.
    A packet longer than `max_packet` bytes is refused by its length unless one block holds it. A
    PUBLISH is not refused: its payload is dropped as it comes, and its message is returned with the
    last byte of it.
    Mutable: used by one thread at a time.
    """

    def __init__(self, version: str, now: Callable[[], int], max_packet: int = MAX_PACKET) -> None:
        self._five = version == "5"
        self._max_packet = max_packet
        self._now = now
        self._large = LARGE
        self._parts: list[memoryview] = []  # of an incomplete packet
        self._have = 0  # bytes in `_parts`
        self._need = 2  # bytes before it can be decoded
        self._head_only = False  # they end before its payload, which is dropped
        self._left = 0  # bytes of that payload that have not come
        self._dropped = DecodedPackets()  # its message
        self._topics: LimitedCache[bytes, str] = LimitedCache(MAX_CACHED_TOPICS)
        # by flags, properties without a proof, and whether one was cut out
        self._headers: LimitedCache[tuple[int, bytes, bool], tuple[Headers, bool, str]]
        self._headers = LimitedCache(MAX_CACHED_HEADERS)

    def feed(self, data: bytes) -> DecodedPackets:
        """Decode the next bytes of the stream.

        Raises:
            WireError: the peer violated the protocol; the rest of the stream is unreadable.
        """
        packets = DecodedPackets()
        start = self._drop(len(data), packets) if self._left else 0
        while self._parts:  # an incomplete packet; complete ones are decoded in place
            missing = self._need - self._have
            if missing > len(data) - start:
                break
            parts = [*self._parts, memoryview(data)[start : start + missing]]
            start += missing
            self._parts, self._have = [], 0
            is_large = self._need > self._large and not self._head_only
            if not (is_large and self._decode_large(parts, packets)):
                whole = b"".join(parts)
                parts.clear()
                self._head_only = False
                if self._decode(whole, 0, packets) == 0:  # now more of its length is known
                    self._keep(whole)
                elif self._left:
                    start += self._drop(len(data) - start, packets)
        else:
            start = self._decode(data, start, packets)
        if start < len(data):
            self._keep(data, start)
        return packets

    def _keep(self, data: bytes, start: int = 0) -> None:
        rest = len(data) - start
        if rest <= self._large:  # do not keep a whole block in memory for it
            data, start = data[start:], 0
        self._parts.append(memoryview(data)[start:])
        self._have += rest

    def _drop(self, have: int, packets: DecodedPackets) -> int:
        """Drop at most `have` bytes of a payload, and return how many; the last add its message."""
        size = min(self._left, have)
        self._left -= size
        if not self._left:
            packets.messages += self._dropped.messages
            packets.acks += self._dropped.acks
            packets.has_special |= self._dropped.has_special
        return size

    def _decode_large(self, parts: list[memoryview], packets: DecodedPackets) -> bool:
        """Decode and clear one whole packet; return False unless its first part holds its header.

        The payload is copied once; joining the packet and slicing the payload would copy it twice.
        """
        first = bytes(parts[0][: self._large])
        body = _decode_size(first, 0)[1]
        if first[0] >> 4 != PUBLISH or (start := self._payload_start(first, 0, body)) > len(first):
            return False
        without_payload = first[:1] + encode_length(start - body) + first[body:start]
        self._decode_publishes(without_payload, 0, packets)
        empty = packets.messages.pop()
        whole = b"".join((parts[0][start:], *parts[1:]))
        parts.clear()
        payload = _as_text(whole) if isinstance(empty.payload, str) else whole
        packets.messages.append(Message(empty.address, payload, empty.headers, empty.proof))
        return True

    def _decode(self, buffer: bytes, position: int, packets: DecodedPackets) -> int:
        """Decode whole packets from `position` on; return the start of the first incomplete one."""
        end = len(buffer)
        acked_ids = packets.acked_ids
        while end - position >= 2:  # the shortest packet
            first, size, body = buffer[position], buffer[position + 1], position + 2
            if size > 127:  # the bit that means "one more byte"
                size, body = _decode_size(buffer, position)
                if body == 0:
                    self._need = end - position + 1
                    return position
            stop = body + size
            if stop > end:
                return self._await(buffer, position, body, stop)
            kind = first >> 4
            if kind == PUBLISH:
                stop = self._decode_publishes(buffer, position, packets)
            elif kind == PUBACK and size == 2:  # just the packet id
                acked_ids.append(buffer[body] << 8 | buffer[body + 1])
                if not packets.messages and len(acked_ids) == 1:
                    stop += _decode_pubacks(buffer, stop, acked_ids)
            elif PUBACK <= kind <= PUBCOMP:
                packets.responses.append(_decode_response(kind, buffer, body, stop))
            elif kind == PINGRESP:
                packets.pongs += 1
            else:
                packets.session.append(buffer[position:stop])
            position = stop
        self._need = 2
        return position

    def _await(self, buffer: bytes, position: int, body: int, stop: int) -> int:
        """Keep an incomplete packet, or drop it over the limit; return the start of what is kept.

        Raises:
            WireError: it is over the limit and no PUBLISH, or the head of one is.
        """
        most, first, have = self._max_packet, buffer[position], len(buffer) - position
        if stop - position <= most:
            self._need = stop - position
            return position
        if first >> 4 != PUBLISH:
            raise WireError(f"mqtt: a packet of {stop - position} bytes, limit {most}")
        head = self._payload_start(buffer, position, body) - position
        if head > min(most, stop - position):
            raise WireError(f"mqtt: topic and properties of {head} bytes, limit {most}")
        if head > have:
            self._need, self._head_only = head, True
            return position
        dropped = self._dropped = DecodedPackets()
        content = buffer[body : position + head]
        self._decode_publishes(bytes((first,)) + encode_length(len(content)) + content, 0, dropped)
        (empty,) = dropped.messages
        payload = DroppedPayload(stop - position - head)
        dropped.messages = [Message(empty.address, payload, empty.headers, empty.proof)]
        self._left, self._need = stop - len(buffer), 2
        return len(buffer)

    def _payload_start(self, buffer: bytes, position: int, body: int) -> int:
        """Return where the payload of the PUBLISH at `position` starts.

        A number past the end of the buffer is how much of it must be known to tell more.
        """
        end, start = len(buffer), body + 2
        if start > end:
            return start
        start += buffer[body] << 8 | buffer[body + 1]
        start += 2 if buffer[position] & 6 else 0
        if not self._five:
            return start
        size, after = decode_length(buffer, start, end) if start < end else (0, 0)
        return after + size if after else max(start, end) + 1

    def _decode_publishes(self, buffer: bytes, position: int, packets: DecodedPackets) -> int:
        """Decode the whole PUBLISH at `position` and all whole ones after it; return their end.

        A first byte is decoded only when it differs from the one before.
        """
        five, topics, known = self._five, self._topics, self._topics.get
        add_message, add_ack = packets.messages.append, packets.acks.append
        by_flags, id_bytes, ack = HEADERS_BY_FLAGS[0], 0, 0
        last_first = -1
        end, stop = len(buffer), position
        while end - stop >= 4:  # the shortest PUBLISH
            first, size, length = _START(buffer, stop)
            body = stop + 2
            if size > 127:  # as in `_decode`
                size, body = decode_length(buffer, stop + 1, end)
                length = int.from_bytes(buffer[body : body + 2], "big")
            if first >> 4 != PUBLISH or not body or body + size > end:
                break
            if first != last_first:
                last_first = first
                qos = first >> 1 & 3
                by_flags, id_bytes = HEADERS_BY_FLAGS[first & 15], _ID_BYTES[qos]
                ack = ACK_PREFIXES.get(qos, 0)
                packets.has_special |= first & 1 == 1 or qos == 2
            stop = body + size
            start = body + 2
            after = start + length
            data = after + id_bytes
            if data > stop:
                raise WireError(_TOO_SHORT)
            raw = buffer[start:after]
            address = known(raw) or topics.add(raw, decode_utf8(raw), 2 * len(raw))
            headers, text, proof = by_flags, False, ""
            if five and data < stop and buffer[data] == 0:  # no properties
                data += 1
            elif five:
                headers, text, proof, data = self._decode_headers(first, buffer, data, stop)
            payload = buffer[data:stop]
            add_message(Message(address, _as_text(payload) if text else payload, headers, proof))
            add_ack(ack | buffer[after] << 8 | buffer[after + 1] if ack else 0)
        if stop == position:
            raise WireError(_TOO_SHORT)
        return stop

    def _decode_headers(
        self, first: int, buffer: bytes, position: int, stop: int
    ) -> tuple[Headers, bool, str, int]:
        """Return headers, whether the payload is text, the proof, and the start of the payload."""
        size, start = decode_length(buffer, position, stop)
        end = start + size
        if not start or end > stop:
            raise WireError("mqtt: the properties of a PUBLISH are longer than the packet")
        rest, cut = cut_proof(buffer, start, end, PROOF_MARKS)
        key = (first & 15, rest, cut != "")
        known = self._headers.get(key)
        if known is not None:
            return known[0], known[1], cut or known[2], end
        properties = buffer[start:end]
        known = headers, _, proof = decode_headers(first, properties, self._now)
        keeps = headers.expiry is None and headers.is_shared
        if keeps and is_shared(properties, PROOF_NAME, cut, proof):
            self._headers.add(key, known, 4 * len(rest))
        return (*known, end)


def _decode_pubacks(buffer: bytes, start: int, acked_ids: list[int]) -> int:
    """Decode the rest of `buffer` if it is successful PUBACKs only; return its bytes, else 0."""
    count = (len(buffer) - start) // 4
    acks = unpack_from(f">{count}I", buffer, start)
    if not acks or min(acks) < PUBACK_PREFIX or max(acks) > PUBACK_PREFIX | 0xFFFF:
        return 0
    acked_ids.extend([ack & 0xFFFF for ack in acks])
    return 4 * count


def _as_text(payload: bytes) -> Payload:
    """Return text if the payload is UTF-8 as declared (MQTT 5.0, 3.3.2.3.2), else its bytes."""
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return payload


def _decode_size(buffer: bytes, position: int) -> tuple[int, int]:
    """Return the remaining length of the packet at `position`, and the start of its body."""
    return decode_length(buffer, position + 1, len(buffer))


def _decode_response(kind: int, buffer: bytes, body: int, stop: int) -> tuple[int, int, int]:
    if stop - body < 2:
        raise WireError("mqtt: an acknowledgement without a packet id")
    reason = buffer[body + 2] if stop - body > 2 else 0
    return kind, buffer[body] << 8 | buffer[body + 1], reason


def encode_acks(acks: Sequence[int]) -> bytes:
    """Return the acknowledgements of many messages as one write; zeros are left out."""
    due = [*filter(None, acks)]
    return pack(f">{len(due)}I", *due)


def encode_pubrel(packet_id: int) -> bytes:
    return pack(">I", 0x6202_0000 | packet_id)


def encode_pubcomp(packet_id: int) -> bytes:
    return pack(">I", 0x7002_0000 | packet_id)
