"""Message selectors: the SQL-92 subset of JMS over headers and properties.

A JMS provider evaluates `Selector.text`; for other brokers the gateway calls `matches`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import cast

from gateway.errors import SubjectError, quoted
from gateway.model.message import Headers
from gateway.routing.selectors.ast import Node, SelectorField, walk
from gateway.routing.selectors.compile import Condition, compile_test
from gateway.routing.selectors.type_rules import check_condition

MAX_CHARACTERS = 65_536
MAX_DEPTH = 100
MAX_OPERATORS = 5_000  # the limit of EMS (tibemsd.conf, selector_logical_operator_limit)
_SCAN = re.compile(
    rf"'[^']*'?|(?P<deep>(?:(?:not\b|[-+])\s*){{{MAX_DEPTH + 1}}})|(?P<open>\()|(?P<close>\))"
    r"|(?P<operator>[<>=]+|[-+*/]|\b(?:and|or|not)\b)",
    re.IGNORECASE,
)
_HINTS = {
    "!": "not equal is written <>",
    '"': "a text stands between apostrophes",
    "'": "a text has no closing apostrophe",
    "’": "the apostrophe of a text is ', not ’",  # noqa: RUF001  # written by word processors
    "‘": "the apostrophe of a text is ', not ‘",  # noqa: RUF001
    "=": "equal is written = once",
    "NULL": "ask with IS NULL or IS NOT NULL",
    "%": "there is no remainder operator",
}


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed selector; `names` are the headers and properties in it."""

    text: str
    tree: Node
    names: frozenset[str] = field(compare=False)
    test: Condition = field(compare=False, repr=False)

    def matches(self, headers: Headers) -> bool:
        """Return whether the selector is true; unknown counts as false."""
        return self.test(headers) is True


def parse_selector(text: str) -> Selector:
    """Parse a message selector.

    Raises:
        SubjectError: with the dialect `selector` and the offset of the error.
    """
    if len(text) > MAX_CHARACTERS:
        reason = f"is {len(text)} characters, limit {MAX_CHARACTERS}"
        raise SubjectError("selector", text, MAX_CHARACTERS, "too-long", reason)
    _check_size(text)
    try:
        tree = check_condition(_parse(text))
    except SubjectError as error:
        raise SubjectError("selector", text, error.offset, error.rule, error.reason) from None
    names: set[str] = set()
    for node, depth in walk(tree):
        if depth > MAX_DEPTH:
            raise _too_deep(text, node.offset)
        if isinstance(node, SelectorField):
            names.add(node.name)
    return Selector(text, tree, frozenset(names), compile_test(tree))


def _check_size(text: str) -> None:
    """Refuse texts that take long to parse: too deep, or with too many operators."""
    depth = operators = 0
    for found in _SCAN.finditer(text):
        depth += (found.lastgroup == "open") - (found.lastgroup == "close")
        operators += found.lastgroup == "operator"
        if depth > MAX_DEPTH or found.lastgroup == "deep":
            raise _too_deep(text, found.start())
        if operators > MAX_OPERATORS:
            reason = f"has more than {MAX_OPERATORS} operators"
            raise SubjectError("selector", text, found.start(), "too-long", reason)


def _too_deep(text: str, at: int) -> SubjectError:
    reason = f"is nested deeper than {MAX_DEPTH}"
    return SubjectError("selector", text, at, "too-deep", reason)


def _parse(text: str) -> Node:
    from lark import exceptions  # noqa: PLC0415  # its import takes a tenth of the start

    from gateway.routing.selectors.grammar import parser  # noqa: PLC0415  # likewise

    try:
        return cast(Node, parser().parse(text))  # the transformer makes no lark tree
    except exceptions.UnexpectedCharacters as error:
        at = cast(int, error.pos_in_stream)
        raise _unexpected(text, at, text[at]) from None
    except exceptions.UnexpectedToken as error:
        if error.token.type == "$END":
            reason = "it ends too early" if text.strip() else "it is empty"
            raise SubjectError("selector", text, len(text), "syntax", reason) from None
        raise _unexpected(text, error.token.start_pos or 0, str(error.token)) from None
    except exceptions.UnexpectedInput as error:
        raise SubjectError("selector", text, 0, "syntax", type(error).__name__) from None


def _unexpected(text: str, at: int, token: str) -> SubjectError:
    hint = _HINTS.get(token.upper(), "")
    reason = f"unexpected {quoted(token)}" + (f"; {hint}" if hint else "")
    return SubjectError("selector", text, at, "syntax", reason)
