"""Estimates of the memory that names, headers, values and messages take.

Every queue and every cache with a limit of bytes counts with these functions. Equal arguments
always give the same number, so that a queue can subtract what it has added; `sys.getsizeof` of a
text grows with its first conversion to UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.model.message import Headers, Message, Value

MESSAGE_OVERHEAD: Final = 300  # bytes of a message beside its name, payload and headers
_OBJECT: Final = 64  # bytes of a value beside its characters, bytes, digits or items
_ITEM: Final = 8  # bytes of the place of an item in a list
_ENTRY: Final = 104  # bytes of the place of an entry in a map that has just grown
_CHARACTER: Final = 4  # bytes of a character in a text that is not ASCII, at most


def text_size(text: str) -> int:
    """Return at least the bytes that the characters of `text` take."""
    return len(text) if text.isascii() else _CHARACTER * len(text)


def value_size(value: Value) -> int:
    """Return about the bytes that a value takes, inner values included; at any depth."""
    size = 0
    waiting: list[Value] = [value]
    while waiting:
        each = waiting.pop()
        size += _OBJECT
        if isinstance(each, str):
            size += text_size(each)
        elif isinstance(each, bytes):
            size += len(each)
        elif isinstance(each, Mapping):
            size += _ENTRY * len(each)
            waiting += each.keys()
            waiting += each.values()
        elif isinstance(each, list | tuple):
            size += _ITEM * len(each)
            waiting += each
        elif isinstance(each, int):
            size += each.bit_length() >> 3
    return size


def properties_size(properties: Mapping[str, Value]) -> int:
    """Return about the bytes of a message's properties; fast for those that are texts only."""
    try:
        text = "".join([*properties, *properties.values()])  # type: ignore[list-item]
    except TypeError:
        return value_size(properties)
    return text_size(text) + (_ENTRY + 2 * _OBJECT) * len(properties) + _OBJECT


def texts_size(texts: Sequence[str]) -> int:
    """Return about the bytes of many texts; fast for thousands of short ones."""
    return text_size("".join(texts)) + (_OBJECT + _ITEM) * len(texts) + _OBJECT


def headers_size(headers: Headers) -> int:
    """Return about the bytes that the variable part of `headers` takes; it is computed once."""
    size = headers.size
    if size < 0:
        size = properties_size(headers.properties) if headers.properties else 0
        if headers.origin:
            size += texts_size(headers.origin)
        for each in (
            headers.content_type,
            headers.correlation_id,
            headers.reply_to,
            headers.source_id,
        ):
            if each:
                size += _OBJECT + (text_size(each) if isinstance(each, str) else len(each))
        headers.size = size
    return size


def messages_size(messages: Sequence[Message], *, opaque: bool = True) -> int:
    """Return about the bytes that `messages` take: names, payloads, headers and proofs.

    Without `opaque`, payloads of bytes do not count: nothing looks into them. The sum over the
    parts of a sequence is the size of the sequence.
    """
    sizes = [
        len(payload) if (payload := message.payload).__class__ is bytes else value_size(payload)
        for message in messages
    ]
    names = [message.address for message in messages]
    text = "".join(names)  # faster than a question to each name
    sizes += [_OBJECT + len(proof) for message in messages if (proof := message.proof)]
    size = sum(sizes) + (len(text) if text.isascii() else sum(map(text_size, names)))
    in_headers = sum([message.headers.size for message in messages])
    if in_headers < 0:
        in_headers = sum([headers_size(message.headers) for message in messages])
    if not opaque:
        payloads = (message.payload for message in messages)
        size -= sum(len(payload) for payload in payloads if payload.__class__ is bytes)
    return size + in_headers + MESSAGE_OVERHEAD * len(names)
