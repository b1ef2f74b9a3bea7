"""A message from its archive row, as `recording` wrote it; it makes nothing up."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgpack

from gateway.errors import ArchiveError
from gateway.model.message import DeliveryMode, Headers, Message, Payload, Value
from gateway.runtime.record.rows import CUT, NOT_TEXT, PROPERTY, REDACTED


def restore(row: Mapping[str, Any]) -> Message:
    """The message of a received row, marked as perhaps seen before.

    Values that were redacted are left out.

    Raises:
        ArchiveError: the row has no payload, or a cut or damaged one.
    """
    if row["payload"] is None:
        raise ArchiveError("no payload: the route did not keep it (archive_payload)")
    headers = {name: value for name, value in row["headers"] or () if value != REDACTED}
    if CUT in headers:
        raise ArchiveError(f"payload cut: {len(row['payload'])} of {headers[CUT]} bytes are kept")
    try:
        payload = _payload(row["payload"], headers.get("payload_kind", "bytes"))
        return Message(row["name"], payload, _headers(row, headers))
    except (ValueError, SyntaxError, TypeError, msgpack.UnpackException) as error:
        raise ArchiveError(f"damaged content: {error}") from error


def redacted(row: Mapping[str, Any]) -> bool:
    """Whether the archive was not allowed to keep some of the message."""
    return any(value == REDACTED for _, value in row["headers"] or ())


def _payload(data: bytes, kind: str) -> Payload:
    if kind == "bytes":
        return data
    if kind == "str":
        return data.decode("utf-8", "surrogatepass")
    unpacked: Payload = msgpack.unpackb(data, unicode_errors="surrogatepass", strict_map_key=False)
    return unpacked


def _headers(row: Mapping[str, Any], told: Mapping[str, str]) -> Headers:
    other = frozenset(json.loads(told.get(NOT_TEXT, "[]")))
    time = row["source_time"]
    correlation = told.get("correlation_id")
    return Headers(
        mode=DeliveryMode(row["mode"] or 0),
        retained=told.get("retained") == "True",
        redelivered=True,
        time=int(time.timestamp() * 1_000_000) if isinstance(time, datetime) else None,
        correlation_id=bytes.fromhex(correlation or "")
        if "correlation_id" in other
        else correlation,
        source_id=row["origin_id"],
        properties={
            name.removeprefix(PROPERTY): _value(text, name in other)
            for name, text in told.items()
            if name.startswith(PROPERTY)
        },
        priority=_number(told.get("priority")),
        expiry=_number(told.get("expiry")),
        reply_to=told.get("reply_to"),
        content_type=told.get("content_type"),
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _value(text: str, literal: bool) -> Value:
    """A value that is no text stands as Python spells it; infinities have no such spelling."""
    if not literal:
        return text
    try:
        value: Value = ast.literal_eval(text)
    except ValueError:
        return float(text)
    return value
