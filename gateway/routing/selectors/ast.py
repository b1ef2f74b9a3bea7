"""A message selector as frozen values; nothing is read or decided here.

`BETWEEN` has no value of its own: it is two comparisons, as JMS defines it. A node's `at` is where
it begins in the text, and plays no part when nodes are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool | float | str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Field:
    """A header such as `JMSPriority`, or a property."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Signed:
    sign: str
    operand: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`first`, then each operator with its operand, from left to right."""

    first: Node
    rest: tuple[tuple[str, Node], ...]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    """`of IN ('a', 'b')`."""

    of: Field
    texts: frozenset[str]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Like:
    """`of LIKE pattern`; the pattern is legal with its `escape`."""

    of: Field
    pattern: str
    escape: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    of: Field
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Logic:
    """Two operands at least, joined by `AND` or by `OR`."""

    word: str
    operands: tuple[Node, ...]
    at: int = field(default=0, compare=False)


Node: TypeAlias = (
    Constant | Field | Signed | Arithmetic | Compare | OneOf | Like | IsNull | Not | Logic
)


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Constant() | Field():
            return ()
        case Signed() | Not():
            return (node.operand,)
        case Arithmetic():
            return (node.first, *(operand for _, operand in node.rest))
        case Compare():
            return (node.left, node.right)
        case OneOf() | Like() | IsNull():
            return (node.of,)
        case Logic():
            return node.operands


def walk(node: Node) -> Iterator[tuple[Node, int]]:
    """Every node below and including `node` with its depth from 1; needs no deep stack."""
    waiting = [(node, 1)]
    while waiting:
        found, depth = waiting.pop()
        yield found, depth
        waiting += [(child, depth + 1) for child in children(found)]
