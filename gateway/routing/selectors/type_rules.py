"""Type rules of selectors: where a condition, a number or a name is legal.

A comparison that no message can satisfy is refused when the selector is parsed.
"""

from __future__ import annotations

from gateway.errors import SubjectError
from gateway.routing.selectors.ast import (
    LONG_MAX,
    Arithmetic,
    Compare,
    Constant,
    Node,
    SelectorField,
    Signed,
)
from gateway.routing.selectors.values import is_number


def type_error(at: int, rule: str, reason: str) -> SubjectError:
    """Return an error without the text; `parse_selector` adds it."""
    return SubjectError("selector", "", at, rule, reason)


def check_condition(node: Node) -> Node:
    """Return `node`; raise SubjectError when it is a number or a text."""
    if _is_number(node) or (isinstance(node, Constant) and not isinstance(node.value, bool)):
        raise type_error(node.offset, "type", "a condition is expected here, not a value")
    return node


def check_number(node: Node) -> Node:
    """Return `node`; raise SubjectError when it is never a number."""
    if isinstance(node, SelectorField) or _is_number(node):
        return node
    raise type_error(node.offset, "type", "a number is expected here")


def _is_number(node: Node) -> bool:
    if not isinstance(node, Constant):
        return isinstance(node, Signed | Arithmetic)
    if fits_only_negated(node):
        raise type_error(node.offset, "number", "the number is past 64 bits")
    return is_number(node.value)


def fits_only_negated(node: Node) -> bool:
    """Return whether it is 2**63, which fits into a long only with a minus before it."""
    value = node.value if isinstance(node, Constant) else None
    return isinstance(value, int) and value == LONG_MAX + 1


def make_comparison(operator: str, left: Node, right: Node) -> Compare:
    """Build a comparison; raise SubjectError when its sides are never equal or in order."""
    if operator not in {"=", "<>"}:
        return Compare(operator, check_number(left), check_number(right), offset=left.offset)
    kinds = {_kind(side) for side in (left, right)} - {"field"}
    if len(kinds) > 1:
        reason = f"{' and '.join(sorted(kinds))} are never equal and never unequal"
        raise type_error(left.offset, "type", reason)
    return Compare(operator, left, right, offset=left.offset)


def _kind(node: Node) -> str:
    if isinstance(node, SelectorField):
        return "field"
    if _is_number(node):
        return "a number"
    if isinstance(node, Constant):
        return "a text" if isinstance(node.value, str) else "a truth value"
    raise type_error(node.offset, "type", "a value is expected here, not a condition")


def check_field(node: Node, word: str) -> SelectorField:
    """Return `node`; raise SubjectError when it is not a name."""
    if isinstance(node, SelectorField):
        return node
    reason = f"the name of a header or property is expected before {word}"
    raise type_error(node.offset, "type", reason)
