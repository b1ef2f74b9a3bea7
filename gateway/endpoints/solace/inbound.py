"""SMF messages to canonical ones; it takes bytes and returns values, the library is not needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from gateway.endpoints.solace import fields
from gateway.errors import WireError
from gateway.model.message import NO_PROPERTIES, DeliveryMode, Headers, Message, Payload, Value
from gateway.wire.smf.content import (
    Described,
    Heading,
    decode_heading,
    decode_metadata,
    decode_payload,
    parameters_of,
    split_body,
)
from gateway.wire.smf.frames import GUARANTEED

_K = TypeVar("_K")
_V = TypeVar("_V")

_MOST_KEPT = 1_024
_LONGEST_KEPT = 512  # bytes of a header or of metadata worth remembering
_MOMENTS = range(-(2**63), 2**63)  # microseconds that have a place in an archive


class Reader:
    """Remembers headers it has seen, for most messages of a source have equal ones. Mutable."""

    def __init__(self) -> None:
        self._headings: dict[bytes, Heading] = {}
        self._described: dict[bytes, Described] = {}
        self._headers: dict[tuple[bytes, int, bool, bool], Headers] = {}

    def read(self, frame: bytes, now: int) -> Message:
        """A message for what arrived at `now` (microseconds); one that is malformed comes whole.

        That one has no address, which no route takes: it becomes a dead letter with its bytes,
        with what is wrong with it and, if that much could be read, its topic in its properties.
        `now` is only looked at for a message that says how long it lives and not until when.
        """
        try:
            return self._read(frame, now)
        except WireError as error:
            said = {fields.UNDECODED: str(error), **_topic_of(frame)}
            return Message("", frame, Headers(properties=MappingProxyType(said)))

    def _read(self, frame: bytes, now: int) -> Message:
        parameters = parameters_of(frame)
        heading = self._headings.get(parameters)
        if heading is None:
            heading = decode_heading(parameters)
            if not heading.topic:
                raise WireError("smf: a message whose topic is empty")
            if not frame[0] & GUARANTEED:  # the ids of those make every header another
                _keep(self._headings, parameters, heading, len(parameters))
        payload, metadata = split_body(frame, heading)
        described = self._described.get(metadata)
        if described is None:
            described = decode_metadata(metadata)
            _keep(self._described, metadata, described, len(metadata))
        key = (metadata, heading.priority, heading.persistent, heading.redelivered)
        headers = self._headers.get(key)
        if headers is None or heading.time_to_live:
            headers = _headers(heading, described, now)
            _keep(self._headers, key, headers, len(metadata))
        return Message(heading.topic, _payload(payload, described), headers)


def undecoded(message: Message) -> Value:
    """What kept a message from being read; None when it was."""
    return None if message.address else message.headers.properties.get(fields.UNDECODED)


def mark_redelivered(message: Message) -> Message:
    if message.headers.redelivered:
        return message
    return replace(message, headers=replace(message.headers, redelivered=True))


def _topic_of(frame: bytes) -> dict[str, Value]:
    try:
        return {fields.TOPIC: decode_heading(parameters_of(frame)).topic}
    except WireError:
        return {}


def _keep(known: dict[_K, _V], key: _K, value: _V, size: int) -> None:
    if size <= _LONGEST_KEPT:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[key] = value


def _payload(payload: bytes, described: Described) -> Payload:
    if described.properties.get(fields.PAYLOAD) == "text":
        return payload.decode("utf-8", "backslashreplace")
    return decode_payload(payload, described.form)


def _headers(heading: Heading, described: Described, now: int) -> Headers:
    header, sent = described.headers, described.properties
    own = {name: sent[name] for name in fields.OWN & sent.keys()} if sent else {}
    return Headers(
        mode=_mode(heading, own),
        retained=own.get(fields.RETAINED) is True,
        redelivered=heading.redelivered,
        priority=_priority(heading.priority, own),
        expiry=_expiry(heading, header, own, now),
        time=_moment(own.get(fields.TIME), 1) or _moment(header.get("ts"), fields.MILLI),
        content_type=_text(header.get("ct")),
        correlation_id=_correlation(header.get("ci"), own),
        reply_to=_text(own.get(fields.REPLY_TO)) or _text(header.get("rt")),
        source_id=_text(header.get("mi")),
        origin=_origin(own.get(fields.ORIGIN)),
        properties=_properties(sent, own),
    )


def _mode(heading: Heading, own: Mapping[str, Value]) -> DeliveryMode:
    if not heading.persistent:
        return DeliveryMode.AT_MOST_ONCE
    exactly = own.get(fields.MODE) == int(DeliveryMode.EXACTLY_ONCE)
    return DeliveryMode.EXACTLY_ONCE if exactly else DeliveryMode.AT_LEAST_ONCE


def _priority(sent: int, own: Mapping[str, Value]) -> int | None:
    """The library's default says nothing, unless we have said it ourselves."""
    if sent == fields.DEFAULT_PRIORITY:
        return sent if fields.PRIORITY in own else None
    return min(sent, 9)


def _expiry(
    heading: Heading, header: Mapping[str, Value], own: Mapping[str, Value], now: int
) -> int | None:
    exact = _moment(own.get(fields.EXPIRY), 1) or _moment(header.get("ex"), fields.MILLI)
    if exact is None and heading.time_to_live:
        return _moment(now + heading.time_to_live * fields.MILLI, 1)
    return exact


def _correlation(sent: Value, own: Mapping[str, Value]) -> bytes | str | None:
    exact = own.get(fields.CORRELATION)
    return exact if isinstance(exact, bytes) else _text(sent)


def _origin(value: Value) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return ()
    return tuple(each for each in value if isinstance(each, str))


def _properties(sent: Mapping[str, Value], own: Mapping[str, Value]) -> Mapping[str, Value]:
    if not sent:
        return NO_PROPERTIES
    found = {name: value for name, value in sent.items() if name not in own}
    hidden = own.get(fields.PROPERTIES)
    for pair in hidden if isinstance(hidden, list) else ():
        match pair:
            case [str(name), value]:
                found[name] = value
            case _:
                continue
    return MappingProxyType(found) if found else NO_PROPERTIES


def _moment(value: Value, unit: int) -> int | None:
    """`value` units of as many microseconds; None for 0, and for what is no time at all."""
    if not isinstance(value, int) or isinstance(value, bool) or not value:
        return None
    return value * unit if value * unit in _MOMENTS else None


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) and value else None
