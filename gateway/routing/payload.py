"""Payload conversions of a route: text, bytes, JSON and maps; a payload that is none is refused.

Nothing is guessed: a map is made of one JSON object, and what JSON cannot say is an error.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from gateway.errors import SubjectError, TranslationError
from gateway.model.message import Payload, Value
from gateway.routing.selectors.ast import LONG_MAX, LONG_MIN

MAX_DEPTH = 64
DIGITS = 19  # of the longest whole number within 64 bits
_HALF = re.compile("[\ud800-\udfff]")  # of a pair: alone it is no character and has no UTF-8
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_UNFIT = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)


class Form(Enum):
    """What a payload becomes."""

    TEXT = "text"
    BYTES = "bytes"
    JSON = "json"  # bytes of UTF-8
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Conversion:
    """`encoding` is that of the bytes, for `TEXT` and `MAP` as they come, for `BYTES` as made."""

    form: Form
    encoding: str = "utf-8"


def parse_conversion(form: str, encoding: str = "utf-8") -> Conversion:
    """A conversion as a configuration writes it.

    Raises:
        SubjectError: of the dialect `payload`; the form or the encoding is unknown.
    """
    if form not in {each.value for each in Form}:
        known = ", ".join(each.value for each in Form)
        raise SubjectError("payload", form, 0, "payload", f"unknown form; known are {known}")
    try:
        name = codecs.lookup(encoding).name.replace("_", "-")
        fits = name not in _UNFIT and isinstance("a".encode(name), bytes)
    except (LookupError, ValueError):
        fits = False
    if not fits:
        raise SubjectError("payload", encoding, 0, "encoding", "unknown encoding, or none of texts")
    return Conversion(Form(form), encoding)


def convert(payload: Payload, conversion: Conversion) -> Payload:
    """`payload` in the form asked for; the same object when it has it.

    Raises:
        TranslationError: of the rule `payload`; its text never repeats the payload.
    """
    match conversion.form:
        case Form.TEXT:
            return payload if isinstance(payload, str) else _text(payload, conversion)
        case Form.BYTES:
            return payload if isinstance(payload, bytes) else _bytes(payload, conversion)
        case Form.MAP:
            if not isinstance(payload, bytes | str):
                return payload
            return _map(_text(payload, conversion), conversion)
        case Form.JSON:
            return _json(payload, conversion)


def _text(payload: Payload, conversion: Conversion) -> str:
    if isinstance(payload, str):
        return payload
    if not isinstance(payload, bytes):
        raise _refused(conversion, "a map is no text; convert it to json")
    try:
        return payload.decode(conversion.encoding)
    except ValueError as error:
        raise _refused(conversion, f"is not {conversion.encoding}") from error


def _bytes(payload: Payload, conversion: Conversion) -> bytes:
    if isinstance(payload, bytes):
        return payload
    if not isinstance(payload, str):
        raise _refused(conversion, "a map is no row of bytes; convert it to json")
    try:
        return payload.encode(conversion.encoding)
    except ValueError as error:
        raise _refused(conversion, f"a character has no {conversion.encoding}") from error


def _json(payload: Payload, conversion: Conversion) -> bytes:
    """A map is written; text and bytes must be JSON, and stay as they are."""
    if isinstance(payload, bytes | str):
        text = _text(payload, conversion)
        _loaded(text, conversion)
        made = text.encode()
        return payload if isinstance(payload, bytes) and payload == made else made
    _refuse_depth(payload, conversion)
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, default=_plain)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = "holds what JSON has not: bytes, NaN, an infinity or half a character"
        raise _refused(conversion, reason) from error


def _plain(value: object) -> dict[str, Value]:
    """Maps of other classes, for `json`."""
    if not isinstance(value, Mapping):
        raise TypeError(type(value).__name__)
    return dict(value)


def _map(text: str, conversion: Conversion) -> Mapping[str, Value]:
    found = _loaded(text, conversion)
    if not isinstance(found, dict):
        raise _refused(conversion, "is JSON, but no object")
    return found


def _loaded(text: str, conversion: Conversion) -> Value:
    try:
        found: Value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_float=_double,
            parse_int=_long,
        )
        if _HALF.search(text) is not None or _HALF_ESCAPED.search(text) is not None:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _refused(conversion, f"is no JSON: {error.msg} at {error.pos}") from None
    except UnicodeEncodeError:
        raise _refused(conversion, "holds half a character") from None
    except ValueError as error:
        raise _refused(conversion, str(error)) from None
    except RecursionError:
        raise _too_deep(conversion) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _refuse_depth(found, conversion)
    return found


def _object(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _no_number(_: str) -> Value:
    raise ValueError("NaN and infinities are no JSON")


def _double(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is past what a double holds")
    return number


def _long(text: str) -> int:
    if len(text) > DIGITS + 1 or not LONG_MIN <= int(text) <= LONG_MAX:
        raise ValueError("a whole number is past 64 bits")
    return int(text)


def _refuse_depth(value: Value, conversion: Conversion) -> None:
    """Level by level, so that no depth of the value needs a deep stack."""
    level: list[Value] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise _too_deep(conversion)


def _inside(value: Value) -> list[Value]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def _too_deep(conversion: Conversion) -> TranslationError:
    return _refused(conversion, f"is nested deeper than {MAX_DEPTH}")


def _refused(conversion: Conversion, reason: str) -> TranslationError:
    return TranslationError("payload", conversion.form.value, "payload", reason)
