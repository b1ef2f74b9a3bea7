"""Compile the values in a selector: headers, properties, and Java's arithmetic."""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.model.message import DeliveryMode, Headers, Value
from gateway.routing.selectors.ast import (
    LONG_MAX,
    LONG_MIN,
    Arithmetic,
    Constant,
    Node,
    SelectorField,
    Signed,
)

ReadValue: TypeAlias = Callable[[Headers], Value]
Operation: TypeAlias = Callable[[Value, Value], Value]
ArithmeticStep: TypeAlias = tuple[Operation, ReadValue]
DEFAULT_PRIORITY = 4  # of a message without a priority (JMS 2.0, 3.4.10)
MICROS_PER_MILLI = 1_000
LONG_RANGE = 2**64


def compile_value(node: Node) -> ReadValue:
    """Return a function that reads the value of `node` from a message; None is NULL.

    Raises:
        TypeError: `node` is a condition; the grammar makes none in place of a value.
    """
    match node:
        case Constant(value):
            return lambda _: value
        case SelectorField(name):
            return HEADERS.get(name) or (lambda headers: headers.properties.get(name))
        case Signed(sign, operand):
            read, times = compile_value(operand), _OPERATIONS["*"]
            factor = -1 if sign == "-" else 1
            return lambda headers: times(read(headers), factor)
        case Arithmetic(first, rest):
            steps = [(_OPERATIONS[operator], compile_value(operand)) for operator, operand in rest]
            return _arithmetic(compile_value(first), steps)
        case _:
            raise TypeError(f"{type(node).__name__} is no value")


def is_number(value: object) -> bool:
    """Return whether a value is an integer or a double, and no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def promoted(left: Value, right: Value) -> tuple[float, float] | None:
    """Promote two numbers as Java does: both long or both double; None for other values."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    if isinstance(left, int) and isinstance(right, int):
        return left, right
    return _double(left), _double(right)


def _arithmetic(first: ReadValue, steps: list[ArithmeticStep]) -> ReadValue:
    def read(headers: Headers) -> Value:
        value = first(headers)
        for operation, operand in steps:
            value = operation(value, operand(headers))
        return value

    return read


def _on_numbers(operation: Callable[[float, float], float]) -> Operation:
    """Return the operation on two values; NULL without two numbers or without a result."""

    def operate(left: Value, right: Value) -> Value:
        pair = promoted(left, right)
        try:
            return None if pair is None else _long(operation(pair[0], pair[1]))
        except ZeroDivisionError:
            return None

    return operate


def _divided(above: float, below: float) -> float:
    """Divide; longs towards zero, and no result for a long divided by zero, as in Java."""
    if isinstance(above, int) and isinstance(below, int):
        whole = abs(above) // abs(below)
        return whole if (above < 0) == (below < 0) else -whole
    if below != 0:
        return above / below
    if above == 0 or math.isnan(above):
        return math.nan
    return math.copysign(math.inf, above) * math.copysign(1.0, below)


def _long(number: float) -> float:
    """Wrap an integer to 64 bits, as Java does."""
    if isinstance(number, int) and not LONG_MIN <= number <= LONG_MAX:
        return (number - LONG_MIN) % LONG_RANGE + LONG_MIN
    return number


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # a property from a system with unbounded integers
        return math.inf if number > 0 else -math.inf


def _delivery_mode(headers: Headers) -> Value:
    volatile = headers.mode is DeliveryMode.AT_MOST_ONCE
    return "NON_PERSISTENT" if volatile else "PERSISTENT"


def _timestamp(headers: Headers) -> Value:
    return None if headers.time is None else headers.time // MICROS_PER_MILLI


def _correlation(headers: Headers) -> Value:
    """Return the id as text, as a JMS provider does: bytes that are not UTF-8 in hexadecimal."""
    found = headers.correlation_id
    if not isinstance(found, bytes):
        return found
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found.hex()


HEADERS: Mapping[str, ReadValue] = {
    "JMSDeliveryMode": _delivery_mode,
    "JMSPriority": lambda headers: (
        DEFAULT_PRIORITY if headers.priority is None else headers.priority
    ),
    "JMSMessageID": lambda headers: headers.source_id,
    "JMSTimestamp": _timestamp,
    "JMSCorrelationID": _correlation,
}  # JMSType is a property with that name
_OPERATIONS: Mapping[str, Operation] = {
    "+": _on_numbers(operators.add),
    "-": _on_numbers(operators.sub),
    "*": _on_numbers(operators.mul),
    "/": _on_numbers(_divided),
}
