"""Messages from the bytes that BatchPacker.java packs; `docs/ems.md` describes the conversion."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from struct import Struct
from struct import error as StructError  # noqa: N812  # the class has a lower-case name
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from gateway.endpoints.jms import property_names as names
from gateway.endpoints.jms.addresses import (
    DESTINATION_KINDS,
    TEMPORARY_TOPIC,
    TOPIC,
    import_mark,
    join_address,
)
from gateway.endpoints.jms.subscription_filter import SubscriptionFilter
from gateway.endpoints.jms.value_codec import SURROGATES, ValueReader
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import WireError
from gateway.model.copy_proof import SourceMark
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import NO_PROPERTIES, DeliveryMode, Headers, Message, Payload, Value
from gateway.model.proof_text import read_proof

TEXT, BYTES, MAP, STREAM, OBJECT, NONE, NULL_TEXT, UNREADABLE = range(8)  # as in BatchPacker.java
EXTRA_UNREADABLE = 4  # flag: a reason stands in place of the properties
RECORD = Struct(">BBBBqqiiii")
MICROSECONDS_PER_MS = 1_000  # JMS counts milliseconds
_TIMES = range(-(2**63) // MICROSECONDS_PER_MS + 1, 2**63 // MICROSECONDS_PER_MS)  # an archive's
DEFAULT_PRIORITY = 4  # JMS 2.0, 3.4.10
EXPIRY_TOLERANCE = 10_000_000  # microseconds between the gateway's expiry and the server's
MAX_REMEMBERED_SIZE = 8 << 20  # bytes of addresses
STREAM_KEY: Final = "stream"
Values: TypeAlias = dict[str, Value]

_BODY_FORMS: Final = {
    STREAM: "stream",
    OBJECT: "object",
    NONE: "none",
    NULL_TEXT: "null",
    UNREADABLE: "unreadable",
}
_TYPES: dict[str, Callable[[str], Value]] = {"bytes": b64decode, "int": int, "json": json.loads}
_MODES = (DeliveryMode.AT_MOST_ONCE, DeliveryMode.AT_LEAST_ONCE)


@dataclass(slots=True)
class DrainedBatch:
    """The messages of one drain; `unwanted` are positions in the batch.

    Mutable: owned by the receiving thread while it reads.
    """

    count: int
    messages: list[Message] = field(default_factory=list)
    unwanted: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # of what was dropped or noted


class BatchReader:
    """Reads packed batches of consumers, each of which subscribed to a kind and a name.

    A message that the server imported to a topic gets an entry in its origin path.
    Mutable: owned by the receiving thread; it remembers addresses, and counts in one batch.
    """

    def __init__(self, settings: JmsSettings, subscriptions: Sequence[tuple[int, str]]) -> None:
        ems_names = settings.dialect in ("ems", "rv")
        self._filter = SubscriptionFilter(subscriptions, ems_names=ems_names)
        self._default = DESTINATION_KINDS[settings.destination]
        self._keep_temporary = settings.temporary_reply == "map"
        self._broker = settings.broker_key
        self._counts: Counter[str] = Counter()  # of the batch that is read
        self._addresses = LimitedCache[tuple[int, int, bytes], str](MAX_REMEMBERED_SIZE)

    def read(self, data: bytes) -> DrainedBatch:
        """Return the messages of one drain.

        Raises:
            WireError: BatchPacker.java would not have packed these bytes.
        """
        try:
            return self._read(data)
        except (IndexError, StructError, TypeError, ValueError) as error:
            raise WireError(f"jms: a malformed batch: {error}") from error

    def _read(self, data: bytes) -> DrainedBatch:
        count = int.from_bytes(data[:4], "big")
        batch = DrainedBatch(count)
        self._counts = batch.counts
        add = batch.messages.append
        addresses = self._addresses
        position = end = 4 + count * RECORD.size
        for index, record in enumerate(RECORD.iter_unpack(memoryview(data)[4:position])):
            form, flags, priority, consumer, time, expiry, id_size, name_size, size, more = record
            begin = end
            position = begin + id_size
            end = position + name_size
            key = (consumer, flags >> 4, data[position:end])
            address = addresses.get(key)
            if address is None:
                address = self._read_address(key)
            position, end = end, end + size
            if address is None:
                batch.unwanted.append(index)
                end += more
                continue
            if form == BYTES:
                payload: Payload = data[position:end]
            elif form == TEXT:
                payload = data[position:end].decode("utf-8", SURROGATES)
            else:
                try:
                    payload = _read_body(form, data, position, end)
                except WireError as error:  # nested too deep; only this message is unreadable
                    form, payload = UNREADABLE, str(error).encode()
            headers = Headers(
                _MODES[flags & 1],
                False,  # by position, which is faster
                flags & 2 != 0,
                None if priority == DEFAULT_PRIORITY else priority,
                expiry * MICROSECONDS_PER_MS or None if expiry in _TIMES else None,
                time * MICROSECONDS_PER_MS or None if time in _TIMES else None,
                None,
                None,
                None,
                data[begin : begin + id_size].decode("utf-8", SURROGATES) if id_size else None,
            )
            proof = ""
            if more or form > MAP:
                reason = b""
                if form == UNREADABLE:
                    payload, reason = b"", payload
                extra = data[end : end + more]
                end += more
                if flags & EXTRA_UNREADABLE:
                    extra, reason = b"", extra
                headers, proof = self._with_extra(headers, form, extra, reason)
                headers = self._mark_imported(headers, key)
            add(Message(address, payload, headers, proof))
        return batch

    def _read_address(self, key: tuple[int, int, bytes]) -> str | None:
        consumer, kind, raw = key
        name = raw.decode("utf-8", SURROGATES)
        if not self._filter.accepts(consumer, kind, name):
            return None
        address = join_address(kind, name, self._default)
        self._addresses.add(key, address, len(raw) + text_size(address))
        return address

    def _with_extra(
        self, headers: Headers, form: int, extra: bytes, reason: bytes
    ) -> tuple[Headers, str]:
        """Return `headers` with all that `extra` has, and the proof.

        With a `reason` the message is unreadable.
        """
        try:
            headers, proof = self._read_extra(headers, form, extra)
        except WireError as error:  # nested too deep
            headers, proof = self._read_extra(headers, form, b"")
            reason = str(error).encode()
        if not reason:
            return headers, proof
        self._counts["unreadable"] += 1
        text = reason.decode("utf-8", SURROGATES)
        properties = MappingProxyType({**headers.properties, names.BODY_ERROR: text})
        return replace(headers, properties=properties), proof

    def _read_extra(self, headers: Headers, form: int, more: bytes) -> tuple[Headers, str]:
        """Return `headers` with all fields and properties that only some messages have."""
        properties: Values = {}
        own: Values = {}
        correlation = reply_to = None
        if more:
            reader = ValueReader(more)
            correlation = _read_text(reader)
            reply_kind, reply = reader.read_byte(), _read_text(reader)
            if reply is not None:
                reply_to = self._reply_address(reply_kind, reply)
            if (jms_type := _read_text(reader)) is not None:
                properties[names.JMS_TYPE] = jms_type
            if delivery_time := reader.read_long():
                properties["JMSDeliveryTime"] = delivery_time
            for _ in range(reader.read_int()):
                name = reader.read_text()
                value = reader.read_value()
                if name.startswith(names.GATEWAY_PREFIX) and name not in names.IDS:
                    own[name] = value
                else:
                    properties[names.decode_property_name(name)] = value
        if correlation is None:  # an import from SmartSockets sets no JMSCorrelationID
            found = properties.get(names.SMARTSOCKETS_CORRELATION)
            correlation = found if isinstance(found, str) else None
        if (form_name := _BODY_FORMS.get(form)) is not None:
            properties[names.BODY_FORM] = form_name
        proof = read_proof(own.pop(names.PROOF, None))
        return _complete_headers(headers, correlation, reply_to, own, properties), proof

    def _mark_imported(self, headers: Headers, key: tuple[int, int, bytes]) -> Headers:
        """Add the topic to the origin path: the server would export a copy sent back to it."""
        _, kind, name = key
        if kind != TOPIC or not headers.properties.get(names.IMPORTED):
            return headers
        self._counts["imported"] += 1
        mark = SourceMark(import_mark(self._broker, name.decode("utf-8", SURROGATES)))
        return replace(headers, origin=(*headers.origin, mark))

    def _reply_address(self, kind: int, name: str) -> str | None:
        if kind >= TEMPORARY_TOPIC and not self._keep_temporary:
            self._counts["dropped_replies"] += 1
            return None
        return join_address(kind, name, self._default)


def _read_text(reader: ValueReader) -> str | None:
    value = reader.read_value()
    if value is None or isinstance(value, str):
        return value
    raise WireError(f"jms: a header is no text but {type(value).__name__}")


def _read_body(form: int, data: bytes, position: int, end: int) -> Payload:
    if form == MAP:
        return cast(Values, ValueReader(data, position).read_value())
    if form == STREAM:
        return {STREAM_KEY: ValueReader(data, position).read_value()}
    if form == NULL_TEXT:
        return ""
    return b"" if form == NONE else data[position:end]  # of an unreadable body, the reason


def _complete_headers(
    plain: Headers, correlation: str | None, reply_to: str | None, own: Values, properties: Values
) -> Headers:
    """Return `plain` with the values of the gateway's own properties in their fields."""
    if own:
        _restore_types(properties, own.pop(names.PROPERTY_TYPES, None))
    origin = own.get(names.ORIGIN)
    content_type = own.get(names.CONTENT_TYPE)
    source_id = own.get(names.SOURCE_ID)
    time = own.get(names.TIME)
    return Headers(
        mode=plain.mode,
        redelivered=plain.redelivered,
        priority=plain.priority,
        expiry=_choose_expiry(plain.expiry, own.get(names.EXPIRY)),
        time=time if isinstance(time, int) else plain.time,
        content_type=content_type if isinstance(content_type, str) else None,
        correlation_id=_read_correlation(correlation, own.get(names.CORRELATION_FORM)),
        reply_to=reply_to,
        source_id=source_id if isinstance(source_id, str) else plain.source_id,
        origin=tuple(origin.split(",")) if isinstance(origin, str) and origin else (),
        properties=MappingProxyType(properties) if properties else NO_PROPERTIES,
    )


def _choose_expiry(server: int | None, finer: Value) -> int | None:
    """Return the gateway's finer value unless the server has shortened or removed the expiry."""
    if server is not None and isinstance(finer, int) and abs(finer - server) <= EXPIRY_TOLERANCE:
        return finer
    return server


def _read_correlation(text: str | None, form: Value) -> bytes | str | None:
    if text is None or form is None:
        return text
    try:
        return bytes.fromhex(text) if form == "hex" else text.encode("utf-8", SURROGATES)
    except ValueError:
        return text


def _restore_types(properties: Values, listed: Value) -> None:
    """Restore the types of properties that JMS carries as text."""
    if not isinstance(listed, str):
        return
    try:
        for name, form in json.loads(listed).items():
            properties[name] = _TYPES[form](str(properties[name]))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return  # not written by a gateway: the text is the value
