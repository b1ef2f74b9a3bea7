"""Compile the conditions of a selector to closures; None is SQL's unknown.

Types follow JMS 2.0, 3.8.1.2 and 3.8.1.3: a comparison of unlike types is false, a comparison with
NULL is unknown. Arithmetic is that of Java's long and double, and NULL where it has no result.
"""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.model.message import Headers, Value
from gateway.routing.selectors.ast import (
    Compare,
    Constant,
    IsNull,
    Like,
    Logic,
    Node,
    Not,
    OneOf,
)
from gateway.routing.selectors.values import ReadValue, compile_value, is_number, promoted

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
