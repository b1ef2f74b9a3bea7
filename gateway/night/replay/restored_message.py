"""Restores a message from its archive row: the inverse of `delivery.rows`.

The values of properties are texts as Python writes them: of any depth, also infinities and NaN.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgpack

from gateway.clock import microseconds
from gateway.errors import ArchiveError
from gateway.model.message import DeliveryMode, Headers, Message, Payload, Value
from gateway.runtime.delivery.rows import FULL_SIZE, NOT_TEXT, PROPERTY_PREFIX, REDACTED

_TOKEN: Final = re.compile(
    r"""[ ]*(?:([\[{(])|([\]})])|([,:])|(b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*"|[\w.+-]+))""",
    re.DOTALL,
)
_CLOSING: Final = {"[": "]", "{": "}", "(": ")"}


def read_literal(text: str) -> Value:
    """Return the value; its depth needs no stack, because a publisher chooses it.

    Raises:
        ValueError: the text is not a value.
        SyntaxError: a string or number in it is malformed.
    """
    outer: list[tuple[str, list[Value]]] = []
    kind, items = "", list[Value]()
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(f"no value at character {position}")
        position = token.end()
        opening, closing, _, scalar = token.groups()
        if opening:
            outer.append((kind, items))
            kind, items = opening, []
        elif closing:
            if _CLOSING.get(kind) != closing:
                raise ValueError(f"{closing!r} closes nothing")
            value = _container(kind, items)
            kind, items = outer.pop()
            items.append(value)
        elif scalar:
            items.append(_scalar(scalar))
    if kind or len(items) != 1:
        raise ValueError("the text is not one value")
    return items[0]


def _container(kind: str, items: list[Value]) -> Value:
    if kind == "[":
        return items
    if kind == "(":
        return tuple(items)
    return dict(zip(items[::2], items[1::2], strict=True))  # type: ignore[arg-type]


def _scalar(text: str) -> Value:
    if text.lstrip("+-") in {"inf", "nan"}:
        return float(text)
    value: Value = ast.literal_eval(text)
    return value


def restore(row: Mapping[str, Any]) -> Message:
    """The message of a received row, marked as redelivered and without redacted values.

    Raises:
        ArchiveError: the row has no payload, or a cut or damaged one.
    """
    if row["payload"] is None:
        raise ArchiveError("no payload: the route did not keep it (archive_payload)")
    headers = {name: value for name, value in row["headers"] or () if value != REDACTED}
    if FULL_SIZE in headers:
        kept, full = len(row["payload"]), headers[FULL_SIZE]
        raise ArchiveError(f"payload cut: {kept} of {full} bytes are kept")
    try:
        payload = _payload(row["payload"], headers.get("payload_kind", "bytes"))
        return Message(row["name"], payload, _headers(row, headers))
    except (ValueError, SyntaxError, TypeError, msgpack.UnpackException) as error:
        raise ArchiveError(f"damaged content: {error}") from error


def has_redacted_values(row: Mapping[str, Any]) -> bool:
    """Return whether the archive kept the message without some of its values."""
    return any(value == REDACTED for _, value in row["headers"] or ())


def _payload(data: bytes, kind: str) -> Payload:
    if kind == "bytes":
        return data
    if kind == "str":
        return data.decode("utf-8", "surrogatepass")
    unpacked: Payload = msgpack.unpackb(data, unicode_errors="surrogatepass", strict_map_key=False)
    return unpacked


def _headers(row: Mapping[str, Any], texts: Mapping[str, str]) -> Headers:
    not_text = frozenset(json.loads(texts.get(NOT_TEXT, "[]")))
    time = row["source_time"]
    correlation = texts.get("correlation_id")
    return Headers(
        mode=DeliveryMode(row["mode"] or 0),
        retained=texts.get("retained") == "True",
        redelivered=True,
        time=microseconds(time) if isinstance(time, datetime) else None,
        correlation_id=bytes.fromhex(correlation or "")
        if "correlation_id" in not_text
        else correlation,
        source_id=row.get("identity") or row["origin_id"],  # by which a repeat is known
        properties={
            name.removeprefix(PROPERTY_PREFIX): read_literal(text) if name in not_text else text
            for name, text in texts.items()
            if name.startswith(PROPERTY_PREFIX)
        },
        priority=_number(texts.get("priority")),
        expiry=_number(texts.get("expiry")),
        reply_to=texts.get("reply_to"),
        content_type=texts.get("content_type"),
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
