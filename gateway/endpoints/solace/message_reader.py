"""Canonical messages from the bytes of SMF messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from gateway.endpoints.solace import property_names as names
from gateway.errors import WireError
from gateway.model.copy_proof import PROOF_SIZES
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import NO_PROPERTIES, DeliveryMode, Headers, Message, Payload, Value
from gateway.model.proof_text import cut_proof, is_shared, read_proof
from gateway.wire.smf import received_message as smf
from gateway.wire.smf.frames import GUARANTEED
from gateway.wire.smf.sdt import STRING

_MAX_REMEMBERED = 8 << 20  # bytes of headers, and of metadata
_NAME = names.PROOF.encode()
_TEXT_HEAD = STRING << 2  # with one byte for the length, which counts these two and the NUL
_PROOF_MARKS = tuple(
    bytes((_TEXT_HEAD, len(_NAME) + 3)) + _NAME + bytes((0, _TEXT_HEAD, size + 3))
    for size in PROOF_SIZES
)
_ARCHIVE_TIMES = range(-(2**63), 2**63)  # microseconds that an archive can store


class SolaceMessageReader:
    """Decodes messages; most messages of a source have equal headers, which are decoded once.

    Mutable: owned by the receiving thread; it remembers headers.
    """

    def __init__(self) -> None:
        self._smf_headers: LimitedCache[bytes, smf.MessageHeader] = LimitedCache(_MAX_REMEMBERED)
        # by the bytes without a proof, and whether one was cut out
        self._metadata: LimitedCache[tuple[bytes, bool], smf.MessageMetadata]
        self._metadata = LimitedCache(_MAX_REMEMBERED)
        self._headers: LimitedCache[tuple[tuple[bytes, bool], int, bool, bool], Headers]
        self._headers = LimitedCache(_MAX_REMEMBERED)

    def read(self, frame: bytes, now: int) -> Message:
        """Return the message that arrived at `now` (microseconds).

        A malformed message is returned without an address, which no route accepts, so that it
        becomes a dead letter. Its payload is the whole frame; its properties hold the error and
        the topic, if readable. `now` matters for a message with a time to live and no expiry.
        """
        try:
            return self._read(frame, now)
        except WireError as error:
            return _undecoded(frame, str(error))
        except Exception as error:  # noqa: BLE001  # our fault must not stop the source
            return _undecoded(frame, f"smf: unexpected error: {type(error).__name__}: {error}")

    def _read(self, frame: bytes, now: int) -> Message:
        parameters = smf.header_parameters(frame)
        header = self._smf_headers.get(parameters)
        if header is None:
            header = smf.decode_header(parameters)
            if not header.topic:
                raise WireError("smf: the topic of a message is empty")
            if not frame[0] & GUARANTEED:  # each guaranteed message has its own ids
                self._smf_headers.add(parameters, header, 2 * len(parameters))
        payload, encoded = smf.split_body(frame, header)
        shared, metadata, proof = self._read_metadata(encoded)
        key = (shared, header.priority, header.persistent, header.redelivered)
        headers = self._headers.get(key)
        if headers is None or header.time_to_live:
            headers = _make_headers(header, metadata, now)
            if not header.time_to_live:  # its end concerns this message alone
                self._headers.add(key, headers, 4 * len(encoded))
        return Message(header.topic, _read_payload(payload, metadata), headers, proof)

    def _read_metadata(self, encoded: bytes) -> tuple[tuple[bytes, bool], smf.MessageMetadata, str]:
        """Return a key of all metadata that differ from these in the proof only, them, and it."""
        rest, cut = cut_proof(encoded, 0, len(encoded), _PROOF_MARKS)
        key = (rest, cut != "")
        known = self._metadata.get(key)
        if known is not None:
            return key, known, cut or read_proof(known.properties.get(names.PROOF))
        metadata = smf.decode_metadata(encoded)
        proof = read_proof(metadata.properties.get(names.PROOF))
        if not is_shared(encoded, _NAME, cut, proof):
            return (encoded, False), metadata, proof
        self._metadata.add(key, metadata, 4 * len(encoded))
        return key, metadata, proof


def decoding_error(message: Message) -> Value:
    """Return the error of a malformed message, or None."""
    return None if message.address else message.headers.properties.get(names.UNDECODED)


def _undecoded(frame: bytes, error: str) -> Message:
    properties: dict[str, Value] = {names.UNDECODED: error}
    with suppress(Exception):  # the topic is left out when it is part of the error
        properties[names.UNDECODED_TOPIC] = smf.decode_header(smf.header_parameters(frame)).topic
    return Message("", frame, Headers(properties=MappingProxyType(properties)))


def _read_payload(payload: bytes, metadata: smf.MessageMetadata) -> Payload:
    if metadata.properties.get(names.PAYLOAD) == "text":
        return payload.decode("utf-8", "backslashreplace")
    return smf.decode_payload(payload, metadata.form)


def _make_headers(header: smf.MessageHeader, metadata: smf.MessageMetadata, now: int) -> Headers:
    header_map, sent = metadata.headers, metadata.properties
    own = {name: sent[name] for name in names.GATEWAY_NAMES & sent.keys()} if sent else {}
    return Headers(
        mode=_mode(header, own),
        retained=own.get(names.RETAINED) is True,
        redelivered=header.redelivered,
        priority=_priority(header.priority, own),
        expiry=_expiry(header, header_map, own, now),
        time=_read_time(own.get(names.TIME), 1)
        or _read_time(header_map.get("ts"), names.MICROSECONDS_PER_MS),
        content_type=_nonempty_text(header_map.get("ct")),
        correlation_id=_correlation(header_map.get("ci"), own),
        reply_to=_nonempty_text(own.get(names.REPLY_TO)) or _nonempty_text(header_map.get("rt")),
        source_id=_nonempty_text(header_map.get("mi")),
        origin=_origin(own.get(names.ORIGIN)),
        properties=_properties(sent, own),
    )


def _mode(header: smf.MessageHeader, own: Mapping[str, Value]) -> DeliveryMode:
    if not header.persistent:
        return DeliveryMode.AT_MOST_ONCE
    exactly = own.get(names.MODE) == int(DeliveryMode.EXACTLY_ONCE)
    return DeliveryMode.EXACTLY_ONCE if exactly else DeliveryMode.AT_LEAST_ONCE


def _priority(sent: int, own: Mapping[str, Value]) -> int | None:
    """Return the priority; the library's default counts only if a gateway marked it."""
    if sent == names.DEFAULT_PRIORITY:
        return sent if names.PRIORITY in own else None
    return min(sent, 9)


def _expiry(
    header: smf.MessageHeader, header_map: Mapping[str, Value], own: Mapping[str, Value], now: int
) -> int | None:
    exact = _read_time(own.get(names.EXPIRY), 1) or _read_time(
        header_map.get("ex"), names.MICROSECONDS_PER_MS
    )
    if exact is None and header.time_to_live:
        return _read_time(now + header.time_to_live * names.MICROSECONDS_PER_MS, 1)
    return exact


def _correlation(sent: Value, own: Mapping[str, Value]) -> bytes | str | None:
    exact = own.get(names.CORRELATION)
    return exact if isinstance(exact, bytes) else _nonempty_text(sent)


def _origin(value: Value) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return ()
    return tuple(each for each in value if isinstance(each, str))


def _properties(sent: Mapping[str, Value], own: Mapping[str, Value]) -> Mapping[str, Value]:
    if not sent:
        return NO_PROPERTIES
    found = {name: value for name, value in sent.items() if name not in own}
    hidden = own.get(names.PROPERTIES)
    for pair in hidden if isinstance(hidden, list) else ():
        match pair:
            case [str(name), value]:
                found[name] = value
            case _:
                continue
    return MappingProxyType(found) if found else NO_PROPERTIES


def _read_time(value: Value, unit: int) -> int | None:
    """Return `value` times `unit`, in microseconds; None for 0, and where it is not a time."""
    if not isinstance(value, int) or isinstance(value, bool) or not value:
        return None
    return value * unit if value * unit in _ARCHIVE_TIMES else None


def _nonempty_text(value: Value) -> str | None:
    return value if isinstance(value, str) and value else None
