"""Which parts of a selector may stand where: a condition, a number, a name; no text is read here.

What could never be true for any message is refused when the selector is read, not at night.
"""

from __future__ import annotations

from gateway.errors import SubjectError
from gateway.routing.selectors.ast import (
    LONG_MAX,
    Arithmetic,
    Compare,
    Constant,
    Field,
    Node,
    Signed,
)


def fault(at: int, rule: str, reason: str) -> SubjectError:
    """An error without the text, which `parse_selector` adds."""
    return SubjectError("selector", "", at, rule, reason)


def condition(node: Node) -> Node:
    """`node`, which is true, false or unknown; raises SubjectError for a number or a text."""
    if _is_number(node) or (isinstance(node, Constant) and not isinstance(node.value, bool)):
        raise fault(node.at, "type", "a condition is wanted, and this is a value")
    return node


def number(node: Node) -> Node:
    """`node`, which may be a number."""
    if isinstance(node, Field) or _is_number(node):
        return node
    raise fault(node.at, "type", "a number is wanted here")


def _is_number(node: Node) -> bool:
    match node:
        case Constant(value, at):
            if only_negative(node):
                raise fault(at, "number", "the number is past 64 bits")
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(node, Signed | Arithmetic)


def only_negative(node: Node) -> bool:
    """Whether it is the one number that needs the minus before it to fit into a long."""
    value = node.value if isinstance(node, Constant) else None
    return isinstance(value, int) and value == LONG_MAX + 1


def comparison(operator: str, left: Node, right: Node) -> Compare:
    if operator not in {"=", "<>"}:
        return Compare(operator, number(left), number(right), left.at)
    kinds = {_kind(side) for side in (left, right)} - {"field"}
    if len(kinds) > 1:
        reason = f"{' and '.join(sorted(kinds))} are never equal, and never unequal"
        raise fault(left.at, "type", reason)
    return Compare(operator, left, right, left.at)


def _kind(node: Node) -> str:
    if isinstance(node, Field):
        return "field"
    if _is_number(node):
        return "a number"
    if isinstance(node, Constant):
        return "a text" if isinstance(node.value, str) else "a truth value"
    raise fault(node.at, "type", "a value is wanted here, and this is a condition")


def asked(node: Node, word: str) -> Field:
    """`node`, which must be a name."""
    if isinstance(node, Field):
        return node
    raise fault(node.at, "type", f"the name of a header or property is wanted before {word}")
