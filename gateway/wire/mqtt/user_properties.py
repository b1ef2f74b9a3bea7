"""User properties of MQTT 5.0: pairs of text to typed properties and back.

Text is sent unchanged. A value of another type is sent in its usual text form (`5`, `true`), and
the pair `gateway-types`, a JSON object, names its type, by which the receiving gateway restores it.
Headers for which MQTT has no field are sent as pairs `gateway-...` too.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping

from gateway.model.closing_characters import closing_character
from gateway.model.dead_letter_rule import PROPERTY_NAME, PROPERTY_VALUE
from gateway.model.message import NO_PROPERTIES, Headers, Value
from gateway.wire.mqtt.packet_fields import unsendable_error

PREFIX = "gateway-"
TYPES, ORIGIN, PRIORITY = f"{PREFIX}types", f"{PREFIX}origin", f"{PREFIX}priority"
TIME, SOURCE_ID, PROOF = f"{PREFIX}time", f"{PREFIX}id", f"{PREFIX}proof"
MAX_NUMBER = 2**63 - 1  # a row of the archive holds no more
MAX_DIGITS = len(str(MAX_NUMBER))


def split_pairs(pairs: list[tuple[str, str]]) -> tuple[dict[str, str], Mapping[str, Value]]:
    """Return our own pairs, and the sender's properties with their types restored."""
    if not pairs:
        return {}, NO_PROPERTIES
    own: dict[str, str] = {}
    found: dict[str, Value] = {}
    for name, value in pairs:
        if name in _OWN_NAMES:
            own[name] = value
        elif name not in found:
            found[name] = value
        elif isinstance(before := found[name], list):  # repeated, in order (MQTT 5.0, 3.3.2.3.7)
            before.append(value)
        else:
            found[name] = [before, value]
    for name, kind in _types(own.get(TYPES)).items():
        text = found.get(name)
        if isinstance(text, str) and isinstance(kind, str) and kind in _RESTORE:
            found[name] = _restore(kind, text)
    return own, found


def _types(text: str | None) -> Mapping[str, object]:
    try:
        types = _parse_json(text) if text else {}
    except ValueError:
        return {}
    return types if isinstance(types, dict) else {}


def _restore(kind: str, text: str) -> Value:
    try:
        return _RESTORE[kind](text)
    except ValueError:  # not written by a gateway: keep the text
        return text


def _parse_json(text: str) -> Value:
    """Parse JSON; ValueError also for nesting too deep and for lone surrogates."""
    try:
        value: Value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    json.dumps(value, ensure_ascii=False).encode()
    return value


_RESTORE: Mapping[str, Callable[[str], Value]] = {
    "null": lambda _: None,
    "bool": lambda text: text == "true",
    "int": int,
    "float": float,
    "bytes": lambda text: b64decode(text, validate=True),
    "json": _parse_json,
}
_OWN_NAMES = frozenset({TYPES, ORIGIN, PRIORITY, TIME, SOURCE_ID, PROOF})


def parse_whole_number(text: str | None) -> int | None:
    """Return the number in `text`; None if it is not ASCII digits, or has more than 63 bits."""
    if not text or len(text) > MAX_DIGITS or not (text.isascii() and text.isdigit()):
        return None  # `isdigit` takes the digits of every script, and "²"
    number = int(text)
    return number if number <= MAX_NUMBER else None


def join_pairs(headers: Headers) -> list[tuple[str, str]]:
    """Return the pairs for the properties of `headers` and for headers without a field in MQTT.

    Raises:
        TranslationError: a property has no legal form.
    """
    pairs: list[tuple[str, str]] = []
    types: dict[str, str] = {}
    for name, value in headers.properties.items():
        if name in _OWN_NAMES:
            raise unsendable_error(PROPERTY_NAME, f"the property name {name!r} is the gateway's")
        if isinstance(value, str) and not closing_character(value):
            pairs.append((name, value))
        elif (texts := _text_list(value)) is not None:
            pairs.extend((name, text) for text in texts)
        else:
            types[name], shown = _encode_typed(name, value)
            pairs.append((name, shown))
    if types:
        pairs.append((TYPES, json.dumps(types, ensure_ascii=False, separators=(",", ":"))))
    if headers.origin:
        pairs.append((ORIGIN, ",".join(headers.origin)))
    for name, number in ((PRIORITY, headers.priority), (TIME, headers.time)):
        if number is not None:
            pairs.append((name, str(number)))
    if headers.source_id is not None:
        pairs.append((SOURCE_ID, headers.source_id))
    return pairs


def _text_list(value: Value) -> list[str] | None:
    """Return the texts of a list of two or more texts, sent as one name repeated; else None."""
    if not isinstance(value, list) or len(value) < 2:
        return None
    texts = [item for item in value if isinstance(item, str)]
    return texts if len(texts) == len(value) and not any(map(closing_character, texts)) else None


def _encode_typed(name: str, value: Value) -> tuple[str, str]:
    match value:
        case None:
            return "null", ""
        case bool():
            return "bool", "true" if value else "false"
        case int():
            return "int", _json(name, value)
        case float():
            return "float", repr(value)
        case bytes():
            return "bytes", b64encode(value).decode()
        case _:
            return "json", _json(name, value)


def _json(name: str, value: Value) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise unsendable_error(PROPERTY_VALUE, f"the property {name!r}: {error}") from error
    if closing_character(text):  # then escapes replace all that is not ASCII, and DEL
        text = json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")
    return text
