"""MQTT traffic, bytes to values and back: PUBLISH and its acknowledgements; no socket, no thread.

The packets of the session (CONNACK, SUBACK, DISCONNECT) are cut out whole and left to paho.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from struct import Struct, pack, unpack_from

from gateway.endpoints.mqtt.properties import PLAIN_HEADERS, decode_block, pack_length
from gateway.errors import WireError
from gateway.model.message import Headers, Message, Payload

PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, PINGRESP = 3, 4, 5, 6, 7, 13
SUCCESS = 0x4002_0000  # a PUBACK of two bytes without its packet id
ANSWERED = {0: 0, 1: SUCCESS, 2: 0x5002_0000}  # QoS -> the answer without its packet id
PING = b"\xc0\x00"
KNOWN_TOPICS, KNOWN_HEADERS = 32_768, 1_024  # how many are remembered
SHORT = 256  # bytes of a topic or of properties that are worth remembering
_TOO_SHORT = "mqtt: a PUBLISH is shorter than its fields or has QoS 3"
_ID_BYTES = (0, 2, 2, 1 << 28)  # by QoS; no packet has room for QoS 3 (MQTT 5.0, 3.3.1.2)
_START = Struct(">BBH").unpack_from  # of a PUBLISH: first byte, a short length, that of the topic
LARGE = 16_384  # bytes of a packet that is not worth copying twice


@dataclass(slots=True)
class Arrived:
    """What a block of bytes held; mutable while it is filled.

    `tokens` has an entry per message: its PUBACK or PUBREC as a 32-bit number, 0 for QoS 0.
    """

    messages: list[Message] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    acked: list[int] = field(default_factory=list)  # packet ids of PUBACKs that say success
    answers: list[tuple[int, int, int]] = field(default_factory=list)  # kind, packet id, reason
    session: list[bytes] = field(default_factory=list)  # whole packets for paho
    special: bool = False  # a message is retained or of QoS 2


class Decoder:
    """Collects bytes in any slices and hands out what whole packets they make; mutable for that.

    `now` gives microseconds since 1970 and is asked only for a message with an expiry interval.
    """

    def __init__(self, version: str, now: Callable[[], int], large: int = LARGE) -> None:
        self._five = version == "5"
        self._now = now
        self._large = large
        self._parts: list[memoryview] = []
        self._have = 0
        self._need = 2
        self._topics: dict[bytes, str] = {}
        self._headers: dict[tuple[int, bytes], tuple[Headers, bool]] = {}

    def feed(self, data: bytes) -> Arrived:
        """Take the next bytes of the stream.

        Raises:
            WireError: the peer broke the protocol; nothing after that can be read.
        """
        arrived = Arrived()
        start = 0
        while self._parts:  # a packet that the last block cut; the others are read where they are
            missing = self._need - self._have
            if missing > len(data) - start:
                break
            cut = [*self._parts, memoryview(data)[start : start + missing]]
            start += missing
            self._parts, self._have = [], 0
            if not (self._need > self._large and self._read_large(cut, arrived)):
                whole = b"".join(cut)
                if self._read(whole, 0, arrived) == 0:  # now more of its length is known
                    self._keep(whole)
        else:
            start = self._read(data, start, arrived)
        if start < len(data):
            self._keep(data, start)
        return arrived

    def _keep(self, data: bytes, start: int = 0) -> None:
        rest = len(data) - start
        if rest <= self._large:  # not worth a whole block in memory
            data, start = data[start:], 0
        self._parts.append(memoryview(data)[start:])
        self._have += rest

    def _read_large(self, parts: Sequence[memoryview], arrived: Arrived) -> bool:
        """Read a whole packet that is in `parts`; false when it is not a PUBLISH, or was cut early.

        Its payload is copied once, where joining the packet and cutting the payload out is twice.
        """
        first = bytes(parts[0][: self._large])
        body, start = self._payload_start(first)
        if not 0 < start <= len(first):
            return False
        bare = first[:1] + pack_length(start - body) + first[body:start]
        self._publishes(bare, 0, arrived)
        empty = arrived.messages.pop()
        whole = b"".join((parts[0][start:], *parts[1:]))
        payload = _as_text(whole) if isinstance(empty.payload, str) else whole
        arrived.messages.append(Message(empty.address, payload, empty.headers))
        return True

    def _payload_start(self, first: bytes) -> tuple[int, int]:
        """Where the body of a PUBLISH starts and where its payload; the latter is 0 if unknown."""
        size, body = _long_size(first, 0)
        start = body + 2
        if first[0] >> 4 != PUBLISH or not body or start > len(first):
            return body, 0
        start += first[body] << 8 | first[body + 1]
        start += 2 if first[0] & 6 else 0
        if self._five:
            size, after = _length(first, start, len(first))
            start = after and after + size
        return body, start

    def _read(self, buffer: bytes, position: int, arrived: Arrived) -> int:
        """Read all whole packets from `position` on; where the first unfinished one starts."""
        end = len(buffer)
        acked = arrived.acked
        while end - position >= 2:  # noqa: PLR2004  # the shortest packet
            first, size, body = buffer[position], buffer[position + 1], position + 2
            if size > 127:  # noqa: PLR2004  # the bit that says "one more byte"
                size, body = _long_size(buffer, position)
                if body == 0:
                    self._need = end - position + 1
                    return position
            stop = body + size
            if stop > end:
                self._need = stop - position
                return position
            kind = first >> 4
            if kind == PUBLISH:
                stop = self._publishes(buffer, position, arrived)
            elif kind == PUBACK and size == 2:  # noqa: PLR2004  # just the packet id
                acked.append(buffer[body] << 8 | buffer[body + 1])
                if not arrived.messages and len(acked) == 1:
                    stop += _read_acks(buffer, stop, acked)
            elif PUBACK <= kind <= PUBCOMP:
                arrived.answers.append(_answer(kind, buffer, body, stop))
            elif kind != PINGRESP:
                arrived.session.append(buffer[position:stop])
            position = stop
        self._need = 2
        return position

    def _publishes(self, buffer: bytes, position: int, arrived: Arrived) -> int:
        """Read the whole PUBLISH at `position` and all whole ones behind it; where they end.

        What a first byte says is looked at again only when it changes.
        """
        five, known = self._five, self._topics.get
        add, expect = arrived.messages.append, arrived.tokens.append
        plain, ids, answer = PLAIN_HEADERS[0], 0, 0
        first = -1
        end, stop = len(buffer), position
        while end - stop >= 4:  # noqa: PLR2004  # the shortest PUBLISH
            its_first, size, length = _START(buffer, stop)
            body = stop + 2
            if size > 127:  # noqa: PLR2004  # as in `_read`
                size, body = _long_size(buffer, stop)
                length = int.from_bytes(buffer[body : body + 2], "big")
            if its_first >> 4 != PUBLISH or not body or body + size > end:
                break
            if its_first != first:
                first = its_first
                qos = first >> 1 & 3
                plain, ids, answer = PLAIN_HEADERS[first & 15], _ID_BYTES[qos], ANSWERED.get(qos, 0)
                arrived.special |= first & 1 == 1 or qos == 2  # noqa: PLR2004
            stop = body + size
            start = body + 2
            after = start + length
            data = after + ids
            if data > stop:
                raise WireError(_TOO_SHORT)
            raw = buffer[start:after]
            address = known(raw) or self._learn(raw)
            headers, text = plain, False
            if five and data < stop and buffer[data] == 0:  # no properties
                data += 1
            elif five:
                headers, text, data = self._read_headers(first, buffer, data, stop)
            payload = buffer[data:stop]
            add(Message(address, _as_text(payload) if text else payload, headers))
            expect(answer | buffer[after] << 8 | buffer[after + 1] if answer else 0)
        if stop == position:
            raise WireError(_TOO_SHORT)
        return stop

    def _read_headers(
        self, first: int, buffer: bytes, position: int, stop: int
    ) -> tuple[Headers, bool, int]:
        size, start = _length(buffer, position, stop)
        end = start + size
        if not start or end > stop:
            raise WireError("mqtt: the properties of a PUBLISH are longer than the packet")
        key = (first & 15, buffer[start:end])
        known = self._headers.get(key)
        if known is not None:
            return (*known, end)
        block = decode_block(key[1])
        if block.expires_in is not None:
            return block.headers(first, self._now()), block.text, end
        known = (block.headers(first, 0), block.text)
        if size <= SHORT:
            if len(self._headers) >= KNOWN_HEADERS:
                self._headers.clear()
            self._headers[key] = known
        return (*known, end)

    def _learn(self, raw: bytes) -> str:
        try:
            address = raw.decode()
        except UnicodeDecodeError as error:
            raise WireError("mqtt: a topic name is not UTF-8") from error
        if len(raw) <= SHORT:
            if len(self._topics) >= KNOWN_TOPICS:
                self._topics.clear()
            self._topics[raw] = address
        return address


def _read_acks(buffer: bytes, start: int, acked: list[int]) -> int:
    """The packet ids of what is from `start` on, when it is PUBACKs that say success; its bytes."""
    count = (len(buffer) - start) // 4
    tokens = unpack_from(f">{count}I", buffer, start)
    if not tokens or min(tokens) < SUCCESS or max(tokens) > SUCCESS | 0xFFFF:
        return 0
    acked.extend([token & 0xFFFF for token in tokens])
    return 4 * count


def _as_text(payload: bytes) -> Payload:
    """Text when it is what it declares (MQTT 5.0, 3.3.2.3.2), else the bytes as they came."""
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return payload


def _length(buffer: bytes, position: int, end: int) -> tuple[int, int]:
    """A variable byte integer and the place after it; the place is 0 when bytes are missing."""
    size = shift = 0
    for place in range(position, min(position + 4, end)):
        byte = buffer[place]
        size |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004
            return size, place + 1
        shift += 7
    if end - position >= 4:  # noqa: PLR2004  # MQTT 5.0, 1.5.5: four bytes at most
        raise WireError("mqtt: a length of more than four bytes")
    return 0, 0


def _long_size(buffer: bytes, position: int) -> tuple[int, int]:
    return _length(buffer, position + 1, len(buffer))


def _answer(kind: int, buffer: bytes, body: int, stop: int) -> tuple[int, int, int]:
    if stop - body < 2:  # noqa: PLR2004
        raise WireError("mqtt: an acknowledgement without a packet id")
    reason = buffer[body + 2] if stop - body > 2 else 0  # noqa: PLR2004
    return kind, buffer[body] << 8 | buffer[body + 1], reason


def encode_answers(tokens: Sequence[int]) -> bytes:
    """The acknowledgements of many messages as one write; zeros have none."""
    due = [*filter(None, tokens)]
    return pack(f">{len(due)}I", *due)


def encode_pubrel(packet_id: int) -> bytes:
    return pack(">I", 0x6202_0000 | packet_id)


def encode_pubcomp(packet_id: int) -> bytes:
    return pack(">I", 0x7002_0000 | packet_id)
