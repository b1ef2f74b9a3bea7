"""The outcomes that a selector can have, from the types that headers and properties can have.

The answer is exact for one comparison. Conditions that are joined count as independent, so it may
contain an outcome that no message has, and never lacks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final, TypeAlias

from gateway.model.message import Value
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
    children,
)
from gateway.routing.selectors.compile import NEGATED, compare, text_test

Outcomes: TypeAlias = frozenset[bool | None]  # None is SQL's unknown


class Kind(Enum):
    """The types of a value; another one, such as a map, equals nothing."""

    NULL = "absent"
    NUMBER = "a number"
    TEXT = "a text"
    TRUTH = "a truth value"
    OTHER = "another value"


ANY: Final = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Possible:
    """The possible values: one of `kinds`, and one of `values` where these are few."""

    kinds: frozenset[Kind] = ANY
    values: tuple[Value, ...] = ()  # all of them; empty for a value of which only the kind is known


Fields: TypeAlias = Callable[[str], Possible]  # of a header or property, by its name

PRIORITIES: Final = Possible(frozenset({Kind.NUMBER}), tuple(range(10)))
_BOTH: Final[Outcomes] = frozenset({True, False})
_KINDS: Final[Mapping[type, Kind]] = {
    bool: Kind.TRUTH,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.TEXT,
}


def possible_outcomes(node: Node, fields: Fields) -> Outcomes:
    """Return the outcomes that a condition can have: True, False, and None for unknown."""
    match node:
        case Logic(word, operands):
            decisive = word == "OR"
            found: Outcomes = frozenset({not decisive})
            for operand in operands:
                pairs = product(found, possible_outcomes(operand, fields))
                found = frozenset(_joined(one, other, decisive=decisive) for one, other in pairs)
            return found
        case Not(operand):
            return frozenset(NEGATED[each] for each in possible_outcomes(operand, fields))
        case Compare(operator, left, right):
            return _compared(operator, _possible(left, fields), _possible(right, fields))
        case OneOf() | Like():
            return _tested(_possible(node.of, fields), text_test(node))
        case IsNull(of):
            kinds = _possible(of, fields).kinds
            return frozenset({each is Kind.NULL for each in kinds})
        case _:
            return _compared("=", _possible(node, fields), _exactly(True))


def conditions(node: Node, *, wanted: bool = True) -> Iterator[tuple[Node, bool]]:
    """Yield the comparisons and tests of a condition, without `AND`, `OR` and `NOT`.

    Each has the outcome with which it helps the whole to be `wanted`: the opposite under a `NOT`.
    """
    if isinstance(node, Logic | Not):
        for child in children(node):
            yield from conditions(child, wanted=wanted is not isinstance(node, Not))
    else:
        yield node, wanted


def _joined(one: bool | None, other: bool | None, *, decisive: bool) -> bool | None:
    if decisive in {one, other}:
        return decisive
    return None if None in {one, other} else not decisive


def _possible(node: Node, fields: Fields) -> Possible:
    match node:
        case Constant(value):
            return _exactly(value)
        case SelectorField(name):
            return fields(name)
        case Signed() | Arithmetic():
            numeric = all(Kind.NUMBER in _possible(each, fields).kinds for each in children(node))
            # NULL also for a division by zero, or where an operand is not a number
            return Possible(frozenset({Kind.NUMBER, Kind.NULL} if numeric else {Kind.NULL}))
        case _:
            raise TypeError(f"{type(node).__name__} is no value")


def _exactly(value: bool | float | str) -> Possible:
    return Possible(frozenset({_KINDS[type(value)]}), (value,))


def _compared(operator: str, left: Possible, right: Possible) -> Outcomes:
    if left.values and right.values:
        return frozenset(compare(operator, *pair) for pair in product(left.values, right.values))
    pairs = product(left.kinds, right.kinds)
    return frozenset().union(*(_compared_kinds(operator, *pair) for pair in pairs))


def _compared_kinds(operator: str, left: Kind, right: Kind) -> Outcomes:
    if Kind.NULL in {left, right}:
        return frozenset({None})
    ordered = left is Kind.NUMBER
    alike = left is right and left is not Kind.OTHER and (ordered or operator in {"=", "<>"})
    return _BOTH if alike else frozenset({False})


def _tested(value: Possible, fits: Callable[[str], object]) -> Outcomes:
    if value.values:
        return frozenset(isinstance(each, str) and bool(fits(each)) for each in value.values)
    found: set[bool | None] = {None} if Kind.NULL in value.kinds else set()
    if Kind.TEXT in value.kinds:
        found |= _BOTH
    if value.kinds - {Kind.TEXT, Kind.NULL}:
        found.add(False)
    return frozenset(found)
