"""Compile a selector to closures: its values, and its conditions, where None is SQL's unknown.

Types follow JMS 2.0, 3.8.1.2 and 3.8.1.3: a comparison of unlike types is false, a comparison with
NULL is unknown. Arithmetic is that of Java's long and double, and NULL where it has no result.
"""

from __future__ import annotations

import math
import operator as operators
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.model.message import DeliveryMode, Headers, Value
from gateway.routing.selectors.ast import (
    LONG_MAX,
    LONG_MIN,
    Arithmetic,
    Compare,
    Constant,
    IsNull,
    Like,
    Logic,
    Node,
    Not,
    OneOf,
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
            read, times, factor = compile_value(operand), _OPERATIONS["*"], -1 if sign == "-" else 1
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


Condition: TypeAlias = Callable[[Headers], bool | None]
NEGATED: Mapping[bool | None, bool | None] = {True: False, False: True, None: None}
_ORDER: Mapping[str, Callable[[float, float], bool]] = {
    "=": operators.eq,
    "<>": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


def compile_test(node: Node) -> Condition:
    """Return a function that evaluates a condition: True, False or None (unknown)."""
    match node:
        case Compare():
            return _comparison(node)
        case Logic(word, operands):
            return _logic([compile_test(each) for each in operands], decisive=word == "OR")
        case Not(operand):
            inner = compile_test(operand)
            return lambda headers: NEGATED[inner(headers)]
        case OneOf() | Like() | IsNull():
            return _field_test(node, compile_value(node.of))
        case _:
            return _comparison(Compare("=", node, Constant(value=True)))


def compare(operator: str, left: Value, right: Value) -> bool | None:
    """Compare two values of a message."""
    if left is None or right is None:
        return None
    if (numbers := promoted(left, right)) is not None:
        return _ORDER[operator](*numbers)
    alike = any(isinstance(left, kind) and isinstance(right, kind) for kind in (bool, str))
    if not alike or operator not in {"=", "<>"}:
        return False
    return (left == right) is (operator == "=")


def _comparison(node: Compare) -> Condition:
    operator, read = node.operator, compile_value(node.left)
    if isinstance(node.right, Constant) and isinstance(node.right.value, str):
        return _text_comparison(operator, read, node.right.value)
    if isinstance(node.right, Constant) and is_number(node.right.value):
        return _number_comparison(operator, read, node.right.value)
    other = compile_value(node.right)
    return lambda headers: compare(operator, read(headers), other(headers))


def _text_comparison(operator: str, read: ReadValue, text: str) -> Condition:
    equal = operator == "="

    def test(headers: Headers) -> bool | None:
        value = read(headers)
        if isinstance(value, str):
            return (value == text) is equal
        return None if value is None else False

    return test


def _number_comparison(operator: str, read: ReadValue, number: Value) -> Condition:
    order = _ORDER[operator]

    def test(headers: Headers) -> bool | None:
        value = read(headers)
        if type(value) is type(number):
            return order(value, number)  # type: ignore[arg-type]  # both are int, or both float
        return compare(operator, value, number)

    return test


def _logic(tests: list[Condition], *, decisive: bool) -> Condition:
    """Join conditions: by OR when `decisive` is True, by AND when it is False."""

    def test(headers: Headers) -> bool | None:
        answer: bool | None = not decisive
        for each in tests:
            found = each(headers)
            if found is decisive:
                return decisive
            if found is None:
                answer = None
        return answer

    return test


def _field_test(node: OneOf | Like | IsNull, read: ReadValue) -> Condition:
    if isinstance(node, IsNull):
        return lambda headers: read(headers) is None
    fits = text_test(node)

    def test(headers: Headers) -> bool | None:
        value = read(headers)
        return None if value is None else isinstance(value, str) and bool(fits(value))

    return test


def text_test(node: OneOf | Like) -> Callable[[str], object]:
    """Return a function that says whether a text is in the list, or matches the pattern."""
    if isinstance(node, OneOf):
        return node.texts.__contains__
    return like_pattern(node.pattern, node.escape).fullmatch


def like_pattern(text: str, escape: str) -> re.Pattern[str]:
    """Translate a LIKE pattern to a regular expression without backtracking over `%`.

    The first match of a piece between two `%` is as good as any later one, so each piece is an
    atomic group, and the time is bounded for every text.
    """
    pieces = [""]
    chars = iter(text)
    for char in chars:
        if char == "%" != escape:
            pieces.append("")
        else:
            plain = next(chars) if char == escape else char
            pieces[-1] += "." if char == "_" != escape else re.escape(plain)
    first, *middle = pieces
    if not middle:
        return re.compile(first, re.DOTALL)
    *middle, last = middle
    found = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)
