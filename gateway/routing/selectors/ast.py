"""The syntax tree of a message selector, as frozen values.

`BETWEEN` is two comparisons, as JMS defines it. `offset` is the position of a node in the text;
nodes that differ only in it are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A node with its position in the text."""

    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Constant(Placed):
    """A literal."""

    value: bool | float | str


@dataclass(frozen=True, slots=True)
class SelectorField(Placed):
    """A header such as `JMSPriority`, or a property."""

    name: str


@dataclass(frozen=True, slots=True)
class Signed(Placed):
    """An operand with a sign."""

    sign: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic(Placed):
    """Terms from left to right: `first`, then each operator with its operand."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Compare(Placed):
    """A comparison of two values."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class OneOf(Placed):
    """`of IN ('a', 'b')`."""

    of: SelectorField
    texts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Like(Placed):
    """`of LIKE pattern`; the parser has checked the pattern with its `escape`."""

    of: SelectorField
    pattern: str
    escape: str = ""


@dataclass(frozen=True, slots=True)
class IsNull(Placed):
    """`of IS NULL`."""

    of: SelectorField


@dataclass(frozen=True, slots=True)
class Not(Placed):
    """A negated condition."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Logic(Placed):
    """Two or more conditions joined by `AND` or by `OR`."""

    word: str
    operands: tuple[Node, ...]


Node: TypeAlias = (
    Constant | SelectorField | Signed | Arithmetic | Compare | OneOf | Like | IsNull | Not | Logic
)


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct operands of a node."""
    match node:
        case Constant() | SelectorField():
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
    """Yield `node` and every node below it with its depth from 1, without recursion."""
    waiting = [(node, 1)]
    while waiting:
        found, depth = waiting.pop()
        yield found, depth
        waiting += [(child, depth + 1) for child in children(found)]
