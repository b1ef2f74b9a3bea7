"""Payload conversions of a target: text, bytes, JSON and maps.

A map is made from one JSON object. A value without a JSON form is refused.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from gateway.errors import SubjectError, TranslationError
from gateway.model.dead_letter_rule import PAYLOAD
from gateway.model.message import Payload, Value
from gateway.routing.json_payload import load_json, refuse_depth

_UNSUPPORTED_ENCODINGS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)


class PayloadForm(Enum):
    """The form of a converted payload."""

    TEXT = "text"
    BYTES = "bytes"
    JSON = "json"  # bytes of UTF-8
    MAP = "map"


@dataclass(frozen=True, slots=True)
class PayloadConversion:
    """A form, and the encoding of the bytes: received (`TEXT`, `MAP`, `JSON`) or made (`BYTES`)."""

    form: PayloadForm
    encoding: str = "utf-8"

    @property
    def text(self) -> str:
        """The conversion as a configuration names it."""
        return self.form.value

    def convert(self, payload: Payload) -> Payload:
        """Convert a payload; the same object when it has the form already.

        Raises:
            TranslationError: with the rule `payload`; its text never quotes the payload.
        """
        return _CONVERTERS[self.form](payload, self)


def parse_conversion(form: str, encoding: str = "utf-8") -> PayloadConversion:
    """Parse a conversion as a configuration writes it.

    Raises:
        SubjectError: with the dialect `payload`; the form or the encoding is unknown.
    """
    if form not in {each.value for each in PayloadForm}:
        known = ", ".join(each.value for each in PayloadForm)
        raise SubjectError("payload", form, 0, "payload", f"unknown form; known are {known}")
    try:
        name = codecs.lookup(encoding).name.replace("_", "-")
        fits = name not in _UNSUPPORTED_ENCODINGS and isinstance("a".encode(name), bytes)
    except (LookupError, ValueError):
        fits = False
    if not fits:
        raise SubjectError("payload", encoding, 0, "encoding", "unknown encoding, or none of texts")
    return PayloadConversion(PayloadForm(form), encoding)


def _text(payload: Payload, conversion: PayloadConversion) -> str:
    if isinstance(payload, str):
        return payload
    if not isinstance(payload, bytes):
        raise _refused(conversion, "a map is not text; convert it to json")
    try:
        return payload.decode(conversion.encoding)
    except ValueError as error:
        raise _refused(conversion, f"is not {conversion.encoding}") from error


def _bytes(payload: Payload, conversion: PayloadConversion) -> bytes:
    if isinstance(payload, bytes):
        return payload
    if not isinstance(payload, str):
        raise _refused(conversion, "a map has no bytes; convert it to json")
    try:
        return payload.encode(conversion.encoding)
    except ValueError as error:
        raise _refused(conversion, f"a character has no {conversion.encoding}") from error


def _json(payload: Payload, conversion: PayloadConversion) -> bytes:
    """Write a map as JSON; check text and bytes, and keep them as they are."""
    if isinstance(payload, bytes | str):
        text = _text(payload, conversion)
        _load_json(text, conversion)
        made = text.encode()
        return payload if isinstance(payload, bytes) and payload == made else made
    try:
        refuse_depth(payload)
    except ValueError as error:
        raise _refused(conversion, str(error)) from None
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, default=_as_dict)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = "holds a value without a JSON form: bytes, NaN, an infinity or half a character"
        raise _refused(conversion, reason) from error


def _as_dict(value: object) -> dict[str, Value]:
    """Return a map of another class as a dict, for `json`."""
    if not isinstance(value, Mapping):
        raise TypeError(type(value).__name__)
    return dict(value)


def _map(payload: Payload, conversion: PayloadConversion) -> Mapping[str, Value]:
    if not isinstance(payload, bytes | str):
        return payload
    found = _load_json(_text(payload, conversion), conversion)
    if not isinstance(found, dict):
        raise _refused(conversion, "is JSON, but not an object")
    return found


_CONVERTERS: Mapping[PayloadForm, Callable[[Payload, PayloadConversion], Payload]] = {
    PayloadForm.TEXT: _text,
    PayloadForm.BYTES: _bytes,
    PayloadForm.JSON: _json,
    PayloadForm.MAP: _map,
}


def _load_json(text: str, conversion: PayloadConversion) -> Value:
    try:
        return load_json(text)
    except ValueError as error:
        raise _refused(conversion, str(error)) from None


def _refused(conversion: PayloadConversion, reason: str) -> TranslationError:
    return TranslationError("payload", conversion.form.value, PAYLOAD, reason)
