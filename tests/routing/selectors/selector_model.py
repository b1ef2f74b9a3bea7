"""Message selectors by a slow, plain model: what a tree answers, and how it is written down."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

from gateway.model.message import Headers, Value
from gateway.routing.selectors.ast import (
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


def slow(node: Node, headers: Headers) -> bool | None:  # noqa: PLR0911  # one for each node
    match node:
        case Not(operand):
            found = slow(operand, headers)
            return {True: False, False: True, None: None}[found]
        case Logic(word, operands):
            all_found = [slow(each, headers) for each in operands]
            decisive = word == "OR"
            if decisive in all_found:
                return decisive
            return None if None in all_found else not decisive
        case IsNull(field):
            return value_of(field, headers) is None
        case OneOf(field, texts):
            value = value_of(field, headers)
            return None if value is None else any(text == value for text in texts)
        case Like(field, pattern, escape):
            value = value_of(field, headers)
            if not isinstance(value, str):
                return None if value is None else False
            return slow_like(pattern, escape, value)
        case Compare(word, left, right):
            return slow_compare(word, value_of(left, headers), value_of(right, headers))
        case _:
            return slow_compare("=", value_of(node, headers), True)


def slow_compare(word: str, left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        return None
    kinds = {"number" if type(each) in {int, float} else type(each) for each in (left, right)}
    if len(kinds) > 1 or kinds & {bytes, list}:
        return False
    if kinds != {"number"} and word not in {"=", "<>"}:
        return False
    if float in {type(left), type(right)}:
        left, right = double(left), double(right)
    tests = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le}
    tests |= {">": operator.gt, ">=": operator.ge}
    return bool(tests[word](left, right))  # type: ignore[arg-type]  # alike, as seen above


def double(value: Value) -> float:
    assert isinstance(value, int | float)
    return math.inf if value > 1e308 else -math.inf if value < -1e308 else float(value)


def value_of(node: Node, headers: Headers) -> Value:
    match node:
        case Constant(value):
            return value
        case SelectorField("JMSPriority"):
            return 4 if headers.priority is None else headers.priority
        case SelectorField(name) if name.startswith("JMS") and name != "JMSType":
            known = {
                "JMSDeliveryMode": "PERSISTENT" if headers.mode else "NON_PERSISTENT",
                "JMSTimestamp": None if headers.time is None else headers.time // 1000,
                "JMSCorrelationID": "c-1" if headers.correlation_id else None,
                "JMSMessageID": headers.source_id,
            }
            return known.get(name)
        case SelectorField(name):
            return headers.properties.get(name)
        case Signed(sign, operand):
            return combine("*", value_of(operand, headers), -1 if sign == "-" else 1)
        case Arithmetic(first, rest):
            found = value_of(first, headers)
            for word, operand in rest:
                found = combine(word, found, value_of(operand, headers))
            return found
        case _:
            raise AssertionError(node)


def combine(word: str, left: Value, right: Value) -> Value:
    if type(left) not in {int, float} or type(right) not in {int, float}:
        return None
    if isinstance(left, int) and isinstance(right, int):
        if word == "/" and right == 0:
            return None
        whole = {"+": left + right, "-": left - right, "*": left * right}
        found = whole[word] if word in whole else math.trunc(Fraction(left, right))
        return int.from_bytes((found % 2**64).to_bytes(8), signed=True)
    a, b = double(left), double(right)
    if word == "/":
        if b == 0:
            sign = math.copysign(1, a) * math.copysign(1, b)
            return math.nan if a == 0 or math.isnan(a) else sign * math.inf
        return a / b
    return {"+": a + b, "-": a - b, "*": a * b}[word]


def slow_like(pattern: str, escape: str, text: str) -> bool:
    """Every way to share out the text, with a row of the ways that are still open."""
    chars = iter(pattern)
    steps = [(next(chars), False) if char == escape else (char, char in "%_") for char in chars]
    ends = {0}
    for char, special in steps:
        if special and char == "%":
            ends = {end for begin in ends for end in range(begin, len(text) + 1)}
        else:
            wild = special and char == "_"
            ends = {end + 1 for end in ends if end < len(text) and (wild or text[end] == char)}
    return len(text) in ends


def written(node: Node) -> str:  # noqa: C901, PLR0911  # one for each node
    """The text of a tree, with more parentheses than it needs."""
    match node:
        case Constant(value):
            return quoted(value) if isinstance(value, str) else str(value)
        case SelectorField(name):
            return name
        case Signed(sign, operand):
            return f"{sign} ({written(operand)})"
        case Arithmetic(first, rest):
            return " ".join([bracketed(first), *(f"{w} {bracketed(each)}" for w, each in rest)])
        case Compare(word, left, right):
            return f"{written(left)} {word} {written(right)}"
        case OneOf(field, texts):
            return f"{field.name} IN ({', '.join(map(quoted, texts))})"
        case Like(field, pattern, escape):
            return f"{field.name} LIKE {quoted(pattern)}" + (
                f" ESCAPE '{escape}'" if escape else ""
            )
        case IsNull(field):
            return f"{field.name} IS NULL"
        case Not(operand):
            return f"NOT {bracketed(operand)}"
        case Logic(word, operands):
            return f" {word} ".join(map(bracketed, operands))


def bracketed(node: Node) -> str:
    return f"({written(node)})"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
