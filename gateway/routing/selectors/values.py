"""The values a selector compares: headers, properties, and Java's arithmetic over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from gateway.model.message import DeliveryMode, Headers, Value
from gateway.routing.selectors.ast import (
    LONG_MAX,
    LONG_MIN,
    Arithmetic,
    Constant,
    Field,
    Node,
    Signed,
)

Read: TypeAlias = Callable[[Headers], Value]
Step: TypeAlias = tuple[Callable[[Value, Value], Value], Read]
NORMAL = 4  # the priority of a message whose sender did not care (JMS 2.0, 3.4.10)
MILLI = 1_000  # microseconds
WRAP = 2**64


def compile_value(node: Node) -> Read:
    """What `node`, which is no condition, is worth for a message; None is NULL.

    Raises:
        TypeError: it is a condition; the grammar makes none where a value stands.
    """
    match node:
        case Constant(value):
            return lambda _: value
        case Field(name):
            return _HEADERS.get(name) or (lambda headers: headers.properties.get(name))
        case Signed(sign, operand):
            return _signed(compile_value(operand), -1 if sign == "-" else 1)
        case Arithmetic(first, rest):
            steps = [(_OPERATIONS[operator], compile_value(operand)) for operator, operand in rest]
            return _arithmetic(compile_value(first), steps)
        case _:
            raise TypeError(f"{type(node).__name__} is no value")


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def promoted(left: Value, right: Value) -> tuple[float, float] | None:
    """Two numbers as Java compares and adds them: both long, or both double; None for others."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    if isinstance(left, int) and isinstance(right, int):
        return left, right
    return _double(left), _double(right)


def _signed(read: Read, factor: int) -> Read:
    return lambda headers: _multiplied(read(headers), factor)


def _arithmetic(first: Read, steps: list[Step]) -> Read:
    def read(headers: Headers) -> Value:
        value = first(headers)
        for operation, operand in steps:
            value = operation(value, operand(headers))
        return value

    return read


def _added(left: Value, right: Value) -> Value:
    pair = promoted(left, right)
    return None if pair is None else _long(pair[0] + pair[1])


def _subtracted(left: Value, right: Value) -> Value:
    pair = promoted(left, right)
    return None if pair is None else _long(pair[0] - pair[1])


def _multiplied(left: Value, right: Value) -> Value:
    pair = promoted(left, right)
    return None if pair is None else _long(pair[0] * pair[1])


def _divided(left: Value, right: Value) -> Value:
    """Towards zero between longs, where a division by zero has no answer (Java: an exception)."""
    pair = promoted(left, right)
    if pair is None:
        return None
    above, below = pair
    if isinstance(above, int) and isinstance(below, int):
        if below == 0:
            return None
        whole = abs(above) // abs(below)
        return _long(whole if (above < 0) == (below < 0) else -whole)
    if below != 0:
        return above / below
    if above == 0 or math.isnan(above):
        return math.nan
    return math.copysign(math.inf, above) * math.copysign(1.0, below)


def _long(number: float) -> float:
    """A whole number within 64 bits, as it wraps around in Java."""
    if isinstance(number, int) and not LONG_MIN <= number <= LONG_MAX:
        return (number - LONG_MIN) % WRAP + LONG_MIN
    return number


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # a property from a system whose integers have no end
        return math.inf if number > 0 else -math.inf


def _delivery_mode(headers: Headers) -> Value:
    lost = headers.mode is DeliveryMode.AT_MOST_ONCE
    return "NON_PERSISTENT" if lost else "PERSISTENT"


def _timestamp(headers: Headers) -> Value:
    return None if headers.time is None else headers.time // MILLI


def _correlation(headers: Headers) -> Value:
    """Text as a JMS provider has it: bytes that are no UTF-8 are written in hex."""
    found = headers.correlation_id
    if not isinstance(found, bytes):
        return found
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found.hex()


_HEADERS: Mapping[str, Read] = MappingProxyType(
    {
        "JMSDeliveryMode": _delivery_mode,
        "JMSPriority": lambda headers: NORMAL if headers.priority is None else headers.priority,
        "JMSMessageID": lambda headers: headers.source_id,
        "JMSTimestamp": _timestamp,
        "JMSCorrelationID": _correlation,
    }
)  # JMSType is a property of that name
_OPERATIONS: Mapping[str, Callable[[Value, Value], Value]] = MappingProxyType(
    {"+": _added, "-": _subtracted, "*": _multiplied, "/": _divided}
)
