"""Batches as Packer.java packs them, to messages; `docs/ems.md` says what becomes what."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from struct import Struct
from types import MappingProxyType
from typing import Final, cast

from gateway.endpoints.jms import names
from gateway.endpoints.jms.patterns import Screen
from gateway.endpoints.jms.values import PASS, ValueReader
from gateway.model.message import (
    GATEWAY_ID,
    NO_PROPERTIES,
    DeliveryMode,
    Headers,
    Message,
    Payload,
    Value,
)

TEXT, BYTES, MAP, STREAM, OBJECT, NONE, NULL_TEXT, UNREADABLE = range(8)  # as in Packer.java
RECORD = Struct(">BBBBqqiiii")
MILLI = 1_000  # microseconds
NORMAL = 4  # the priority of a message whose sender did not care (JMS 2.0, 3.4.10)
NEAR = 10_000_000  # microseconds an expiry of ours and the server's may differ
STREAM_KEY: Final = "stream"
ERROR: Final = "jms.error"  # property: why a body could not be read

_MARKS: Final = {
    STREAM: "stream",
    OBJECT: "object",
    NONE: "none",
    NULL_TEXT: "null",
    UNREADABLE: "unreadable",
}
_MODES = (DeliveryMode.AT_MOST_ONCE, DeliveryMode.AT_LEAST_ONCE)


@dataclass(slots=True)
class Drained:
    """A batch's messages; mutable while it is read. `unwanted` are positions in the batch."""

    count: int
    messages: list[Message] = field(default_factory=list)
    unwanted: list[int] = field(default_factory=list)
    dropped_replies: int = 0
    unreadable: int = 0
    imported: int = 0


class BatchReader:
    """Reads batches; `default` is the kind of destination whose addresses have no prefix.

    A message that `broker` has imported to a topic says so in its origin path.
    """

    def __init__(
        self, screen: Screen, default: int, *, keep_temporary: bool, broker: str = ""
    ) -> None:
        self._screen = screen
        self._default = default
        self._keep_temporary = keep_temporary
        self._broker = broker
        self._addresses: dict[tuple[int, int, bytes], str | None] = {}

    def read(self, data: bytes) -> Drained:
        """The messages of one drain."""
        count = int.from_bytes(data[:4], "big")
        drained = Drained(count)
        add = drained.messages.append
        known = self._addresses
        position = end = 4 + count * RECORD.size
        for place, record in enumerate(RECORD.iter_unpack(memoryview(data)[4:position])):
            kind, flags, priority, consumer, time, expiry, id_size, name_size, size, more = record
            begin = end
            position = begin + id_size
            end = position + name_size
            key = (consumer, flags >> 4, data[position:end])
            address = known.get(key)
            if address is None:
                address = self._learn(key)
            position, end = end, end + size
            if address is None:
                drained.unwanted.append(place)
                end += more
                continue
            if kind == BYTES:
                payload: Payload = data[position:end]
            elif kind == TEXT:
                payload = data[position:end].decode("utf-8", PASS)
            else:
                payload = _read_body(kind, data, position, end)
            headers = Headers(
                _MODES[flags & 1],
                False,  # by position, which is faster
                flags & 2 != 0,
                None if priority == NORMAL else priority,
                expiry * MILLI or None,
                time * MILLI or None,
                None,
                None,
                None,
                data[begin : begin + id_size].decode("utf-8", PASS) if id_size else None,
            )
            if more or kind > MAP:
                headers = self._complete(headers, kind, data[end : end + more], drained)
                if names.IMPORTED in headers.properties:
                    headers = self._mark_imported(headers, key, drained)
                if kind == UNREADABLE:
                    payload = b""
                    drained.unreadable += 1
                    error = data[position:end].decode("utf-8", PASS)
                    marked = MappingProxyType({**headers.properties, ERROR: error})
                    headers = replace(headers, properties=marked)
                end += more
            add(Message(address, payload, headers))
        return drained

    def _learn(self, key: tuple[int, int, bytes]) -> str | None:
        consumer, kind, raw = key
        name = raw.decode("utf-8", PASS)
        if not self._screen.wants(consumer, kind, name):
            return None
        if len(self._addresses) >= 16_384:  # noqa: PLR2004  # names remembered
            self._addresses.clear()
        address = names.join_address(kind, name, self._default)
        self._addresses[key] = address
        return address

    def _complete(self, headers: Headers, kind: int, more: bytes, drained: Drained) -> Headers:
        properties: dict[str, Value] = {}
        own: dict[str, Value] = {}
        correlation = reply_to = None
        if more:
            reader = ValueReader(more)
            correlation = cast(str | None, reader.value())
            reply_kind, reply = reader.byte(), cast(str | None, reader.value())
            if reply is not None:
                reply_to = self._reply(reply_kind, reply, drained)
            if (jms_type := reader.value()) is not None:
                properties[names.TYPE] = jms_type
            if delivery_time := reader.long():
                properties["JMSDeliveryTime"] = delivery_time
            for _ in range(reader.number()):
                name = reader.text()
                value = reader.value()
                if name.startswith(names.PREFIX) and name != GATEWAY_ID:
                    own[name] = value
                else:
                    properties[names.read_name(name)] = value
        if correlation is None:  # an import from SmartSockets sets no JMSCorrelationID
            found = properties.get(names.SS_CORRELATION)
            correlation = found if isinstance(found, str) else None
        if (mark := _MARKS.get(kind)) is not None:
            properties[names.BODY] = mark
        return _assemble(headers, correlation, reply_to, own, properties)

    def _mark_imported(
        self, headers: Headers, key: tuple[int, int, bytes], drained: Drained
    ) -> Headers:
        """Note the topic, as nothing may go back there: the server would export it again."""
        _, kind, name = key
        if kind != names.TOPIC or not headers.properties[names.IMPORTED]:
            return headers
        drained.imported += 1
        mark = names.import_mark(self._broker, name.decode("utf-8", PASS))
        return replace(headers, origin=(*headers.origin, mark))

    def _reply(self, kind: int, name: str, drained: Drained) -> str | None:
        if kind >= names.TEMPORARY_TOPIC and not self._keep_temporary:
            drained.dropped_replies += 1
            return None
        return names.join_address(kind, name, self._default)


def _read_body(kind: int, data: bytes, position: int, end: int) -> Payload:
    if kind == MAP:
        return cast("dict[str, Value]", ValueReader(data, position).value())
    if kind == STREAM:
        return {STREAM_KEY: ValueReader(data, position).value()}
    return data[position:end] if kind == OBJECT else "" if kind == NULL_TEXT else b""


def _assemble(
    plain: Headers,
    correlation: str | None,
    reply_to: str | None,
    own: dict[str, Value],
    properties: dict[str, Value],
) -> Headers:
    if own:
        _restore(properties, own.pop(names.TYPES, None))
    origin = own.get(names.ORIGIN)
    content_type = own.get(names.CONTENT_TYPE)
    source_id = own.get(names.SOURCE_ID)
    time = own.get(names.TIME)
    return Headers(
        mode=plain.mode,
        redelivered=plain.redelivered,
        priority=plain.priority,
        expiry=_expiry(plain.expiry, own.get(names.EXPIRY)),
        time=time if isinstance(time, int) else plain.time,
        content_type=content_type if isinstance(content_type, str) else None,
        correlation_id=_correlation(correlation, own.get(names.CORRELATION)),
        reply_to=reply_to,
        source_id=source_id if isinstance(source_id, str) else plain.source_id,
        origin=tuple(origin.split(",")) if isinstance(origin, str) and origin else (),
        properties=MappingProxyType(properties) if properties else NO_PROPERTIES,
    )


def _expiry(server: int | None, ours: Value) -> int | None:
    """Ours is finer, but the server may have been told to shorten or to drop it."""
    if server is not None and isinstance(ours, int) and abs(ours - server) <= NEAR:
        return ours
    return server


def _correlation(text: str | None, form: Value) -> bytes | str | None:
    if text is None or form is None:
        return text
    try:
        return bytes.fromhex(text) if form == "hex" else text.encode("utf-8", PASS)
    except ValueError:
        return text


def _restore(properties: dict[str, Value], listed: Value) -> None:
    """Give back their type to the properties that JMS had to carry as text."""
    if not isinstance(listed, str):
        return
    readers: dict[str, Callable[[str], Value]] = {
        "bytes": b64decode,
        "int": int,
        "json": json.loads,
    }
    try:
        for name, form in json.loads(listed).items():
            properties[name] = readers[form](str(properties[name]))
    except (ValueError, KeyError, AttributeError, TypeError):
        return  # no gateway wrote it: the text is the value
