"""User properties of MQTT 5.0: pairs of text to typed properties and back.

Text crosses as it is; another type crosses in the form a reader expects (`5`, `true`) and is
named in one more pair, `gateway-types`, a JSON object, by which the far gateway restores it. What
MQTT has no field for crosses under `gateway-...` too.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping

from gateway.errors import TranslationError
from gateway.model.message import NO_PROPERTIES, Headers, Value

PREFIX = "gateway-"
TYPES, ORIGIN, PRIORITY = f"{PREFIX}types", f"{PREFIX}origin", f"{PREFIX}priority"
TIME, SOURCE_ID = f"{PREFIX}time", f"{PREFIX}id"
DIGITS = 19  # of a number of our own, 63 bits


def unsendable(rule: str, reason: str) -> TranslationError:
    """A message that has no legal form in MQTT; `rule` is the short name."""
    return TranslationError("mqtt", "", rule, reason)


def split_pairs(pairs: list[tuple[str, str]]) -> tuple[dict[str, str], Mapping[str, Value]]:
    """Our own pairs, and the sender's properties with their types restored."""
    if not pairs:
        return {}, NO_PROPERTIES
    own = {name: value for name, value in pairs if name in _OURS}
    found: dict[str, Value] = {}
    for name, value in pairs:
        if name in _OURS:
            continue
        before = found.get(name)
        if before is None:
            found[name] = value
        else:  # a name may stand more than once and its order counts (MQTT 5.0, 3.3.2.3.7)
            found[name] = [*before, value] if isinstance(before, list) else [before, value]
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
    except ValueError:  # another program's pair that looks like ours: keep its text
        return text


def _parse_json(text: str) -> Value:
    """Any JSON but what cannot be passed on: too deep, or with a lone surrogate in it."""
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
_OURS = frozenset({TYPES, ORIGIN, PRIORITY, TIME, SOURCE_ID})


def whole(text: str | None) -> int | None:
    fits = text and len(text) <= DIGITS and text.isascii() and text.isdigit()
    return int(text) if text and fits else None


def join_pairs(headers: Headers) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    types: dict[str, str] = {}
    for name, value in headers.properties.items():
        if name in _OURS:
            raise unsendable("property-name", f"the property name {name!r} is the gateway's")
        if isinstance(value, str):
            pairs.append((name, value))
        elif (texts := _texts(value)) is not None:
            pairs.extend((name, text) for text in texts)
        else:
            types[name], shown = _typed(name, value)
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


def _texts(value: Value) -> list[str] | None:
    """The texts of a list of two or more, which are the same name several times."""
    if not isinstance(value, list) or len(value) < 2:  # noqa: PLR2004
        return None
    texts = [item for item in value if isinstance(item, str)]
    return texts if len(texts) == len(value) else None


def _typed(name: str, value: Value) -> tuple[str, str]:
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
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise unsendable("property-value", f"the property {name!r}: {error}") from error
