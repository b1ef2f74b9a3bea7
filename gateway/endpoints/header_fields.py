"""Fields of `Headers` that a gateway wrote as plain values, read with a check of their types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from gateway.model.message import DeliveryMode, Value

_BITS: Final = 64  # of a number in a row of the archive
_NUMBERS: Final = ("priority", "expiry", "time")


def _is_number(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < _BITS


def _is_text(value: Value) -> bool:
    return isinstance(value, str)


def _is_flag(value: Value) -> bool:
    return isinstance(value, bool)


FIELD_CHECKS: Final[Mapping[str, Callable[[Value], bool]]] = {
    "mode": lambda value: _is_number(value) and value in tuple(DeliveryMode),
    "retained": _is_flag,
    "redelivered": _is_flag,
    **dict.fromkeys(_NUMBERS, _is_number),
    "content_type": _is_text,
    "correlation_id": lambda value: isinstance(value, str | bytes),
    "reply_to": _is_text,
    "source_id": _is_text,
    "origin": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "properties": lambda value: isinstance(value, Mapping),
}


def read_fields(
    found: Mapping[str, Value], names: Collection[str] = FIELD_CHECKS.keys()
) -> dict[str, Any] | None:
    """Return the fields called `names`; None when one has a wrong type.

    Others are skipped: later versions may have more.
    """
    fields: dict[str, Any] = {name: found[name] for name in names if name in found}
    if not all(FIELD_CHECKS[name](value) for name, value in fields.items()):
        return None
    if "mode" in fields:
        fields["mode"] = DeliveryMode(fields["mode"])
    if "origin" in fields:
        fields["origin"] = tuple(fields["origin"])
    for name in fields.keys() & _NUMBERS:
        fields[name] = int(fields[name])  # of a type that only one system has
    return fields
