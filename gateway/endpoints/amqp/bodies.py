"""The body of a message: data are bytes, a value that is a text is one, others stay as they came.

A body of another kind is a payload with its bytes of AMQP and the property `amqp_body`, by which a
sink writes it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.errors import TranslationError, WireError
from gateway.model.dead_letter_rule import PAYLOAD_FORMAT, PAYLOAD_KIND
from gateway.model.message import DroppedPayload, Message, Value
from gateway.wire.amqp import sections
from gateway.wire.amqp.sections import MessageParts, SectionPlace
from gateway.wire.amqp.values import STRINGS, read_value

BODY: Final = "amqp_body"  # a property
_NAMES: Final = {sections.SEQUENCE: "sequence", sections.VALUE: "value"}


def read_body(
    data: bytes, parts: MessageParts, size: int, most: int
) -> tuple[bytes | str, Mapping[str, Value]]:
    """Return the payload of a message, and the property of its kind.

    `data` are the first bytes of `size`. A payload of more than `most` bytes is dropped.

    Raises:
        WireError: the body is malformed.
    """
    places = parts.body
    if not places:
        return b"", {}
    name = _NAMES.get(places[0].code)
    if name is None:
        return _join(data, [sections.data_place(data, each) for each in places], size, most), {}
    start, end = len(parts.head), places[-1].end
    if size > len(data) or end - start > most:
        return DroppedPayload(size - start), {}
    if end > len(data):
        raise WireError("amqp: the body of a message ends within a value")
    at = places[-1].at
    value, behind = read_value(data, at)
    is_text = name == "value" and data[at] in STRINGS  # and no symbol, character or UUID
    if is_text and isinstance(value, str) and behind == end:
        return value, {}
    return data[start:end], {BODY: name}


def _join(data: bytes, places: Sequence[tuple[int, int]], size: int, most: int) -> bytes:
    total = sum(end - start for start, end in places)
    if size > len(data) or total > most:
        return DroppedPayload(max(total, size - places[0][0]))
    if places[-1][1] > size:
        raise WireError("amqp: the body of a message ends within its data")
    if len(places) == 1:
        return data[places[0][0] : places[0][1]]
    return b"".join(data[start:end] for start, end in places)


def write_body(message: Message, *, texts: bool) -> bytes:
    """Return the sections of a body; with `texts`, a text is a value, and else data.

    Raises:
        TranslationError: it has no form.
    """
    payload = message.payload
    if isinstance(payload, str):
        if texts:
            return sections.text_section(payload)
        payload = payload.encode()
    if not isinstance(payload, bytes):
        reason = "AMQP carries bytes or text"
        raise TranslationError("amqp", message.address, PAYLOAD_KIND, reason)
    kind = message.headers.properties.get(BODY)
    if kind is None:
        return sections.data_section(payload)
    try:
        parts = sections.find_parts(payload)
        is_body = not parts.head and [*map(_kind, parts.body)] == [kind] * len(parts.body)
    except WireError:
        is_body = False
    if not is_body:
        reason = f"the payload is no body that the property `{BODY}` names"
        raise TranslationError("amqp", message.address, PAYLOAD_FORMAT, reason)
    return payload


def _kind(place: SectionPlace) -> str:
    return _NAMES.get(place.code, "")
