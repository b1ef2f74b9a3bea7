"""The grammar of message selectors and the transformer that builds the syntax tree.

The rules are those of JMS 2.0, 3.8.1, and of the EMS User's Guide, "Message Selectors".
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from lark import Lark, Token, Transformer, v_args

from gateway.errors import nearest, quoted
from gateway.routing.selectors.ast import (
    LONG_MAX,
    Arithmetic,
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
from gateway.routing.selectors.type_rules import (
    check_condition,
    check_field,
    check_number,
    fits_only_negated,
    make_comparison,
    type_error,
)
from gateway.routing.selectors.values import HEADERS

GRAMMAR = r"""
?either: every (_OR every)*
?every: denied (_AND denied)*
?denied: NOT denied | test
?test: total
    | total COMPARISON total -> compare
    | total [NOT] BETWEEN total _AND total -> between
    | total [NOT] IN texts -> one_of
    | total [NOT] LIKE TEXT [_ESCAPE TEXT] -> like
    | total IS [NOT] _NULL -> is_null
texts: "(" TEXT ("," TEXT)* ")"
?total: product (SIGN product)*
?product: sign (SCALE sign)*
?sign: SIGN sign -> signed | atom
?atom: TEXT -> text
    | EXACT -> exact
    | APPROXIMATE -> approximate
    | TRUTH -> truth
    | NAME -> name
    | "(" either ")"

_OR.2: /or(?![\w$])/i
_AND.2: /and(?![\w$])/i
NOT.2: /not(?![\w$])/i
BETWEEN.2: /between(?![\w$])/i
IN.2: /in(?![\w$])/i
LIKE.2: /like(?![\w$])/i
IS.2: /is(?![\w$])/i
_ESCAPE.2: /escape(?![\w$])/i
_NULL.2: /null(?![\w$])/i
TRUTH.2: /(?:true|false)(?![\w$])/i
NAME: /(?:[^\W\d]|\$)[\w$]*/
TEXT: /'[^']*(?:''[^']*)*'/
APPROXIMATE.1: /(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|[0-9]+(?:[eE][+-]?[0-9]+[fFdD]?|[fFdD])/
EXACT: /[0-9]+[lL]?/
COMPARISON: "=" | "<>" | "<=" | ">=" | "<" | ">"
SIGN: "+" | "-"
SCALE: "*" | "/"
%ignore /[ \t\f\r\n\x85\u2028\u2029]+/
"""  # noqa: E501  # a terminal is one line
MAX_LONG_DIGITS = 19
MAX_WILDCARDS = 100
HEADER_NAMES = (*HEADERS, "JMSType")


@lru_cache(maxsize=1)
def parser() -> Lark:
    """Return the parser; building it takes longer than parsing a selector, so there is one.

    It builds the nodes while it parses, without recursion.

    Raises:
        lark.UnexpectedInput: the text is not a selector.
        SubjectError: a node breaks a type rule; with the offset, without the text.
    """
    return Lark(GRAMMAR, parser="lalr", lexer="basic", start="either", transformer=_Nodes())


@v_args(inline=True)
class _Nodes(Transformer[Token, Node]):
    """Builds the nodes; one method for each rule and alias of the grammar."""

    def either(self, *operands: Node) -> Node:
        return Logic("OR", tuple(map(check_condition, operands)), offset=operands[0].offset)

    def every(self, *operands: Node) -> Node:
        return Logic("AND", tuple(map(check_condition, operands)), offset=operands[0].offset)

    def denied(self, word: Token, operand: Node) -> Node:
        return Not(check_condition(operand), offset=_offset(word))

    def compare(self, left: Node, operator: Token, right: Node) -> Node:
        return make_comparison(str(operator), left, right)

    def between(self, operand: Node, no: Token | None, _: Token, low: Node, high: Node) -> Node:
        word, above, below = ("AND", ">=", "<=") if no is None else ("OR", "<", ">")
        both = make_comparison(above, operand, low), make_comparison(below, operand, high)
        return Logic(word, both, offset=operand.offset)

    def one_of(self, field: Node, no: Token | None, _: Token, texts: frozenset[str]) -> Node:
        return _denied(no, OneOf(check_field(field, "IN"), texts, offset=field.offset))

    def like(
        self, field: Node, no: Token | None, _: Token, pattern: Token, escape: Token | None
    ) -> Node:
        return _denied(no, _like(field, pattern, escape))

    def is_null(self, field: Node, _: Token, no: Token | None) -> Node:
        word = "IS NULL" if no is None else "IS NOT NULL"
        return _denied(no, IsNull(check_field(field, word), offset=field.offset))

    def texts(self, *texts: Token) -> frozenset[str]:
        return frozenset(map(_unquoted, texts))

    def total(self, first: Node, *rest: Node | Token) -> Node:
        operators = [str(each) for each in rest if isinstance(each, Token)]
        operands = [check_number(each) for each in rest if not isinstance(each, Token)]
        steps = tuple(zip(operators, operands, strict=True))
        return Arithmetic(check_number(first), steps, offset=first.offset)

    product = total

    def signed(self, sign: Token, operand: Node) -> Node:
        if sign == "-" and fits_only_negated(operand):
            return Constant(-LONG_MAX - 1, offset=_offset(sign))
        return Signed(str(sign), check_number(operand), offset=_offset(sign))

    def text(self, token: Token) -> Node:
        return Constant(_unquoted(token), offset=_offset(token))

    def truth(self, token: Token) -> Node:
        return Constant(token.upper() == "TRUE", offset=_offset(token))

    def exact(self, token: Token) -> Node:
        digits = token.rstrip("lL")
        if digits != "0" and digits.startswith("0"):
            reason = "a leading zero means octal in Java; leave it out"
            raise type_error(_offset(token), "number", reason)
        if len(digits) > MAX_LONG_DIGITS or int(digits) > LONG_MAX + 1:
            raise type_error(_offset(token), "number", "the number is past 64 bits")
        return Constant(int(digits), offset=_offset(token))

    def approximate(self, token: Token) -> Node:
        value = float(token.rstrip("fFdD"))
        if math.isinf(value):
            raise type_error(_offset(token), "number", "the number is past what a double holds")
        return Constant(value, offset=_offset(token))

    def name(self, token: Token) -> Node:
        free = token in HEADER_NAMES or token.startswith(("JMSX", "JMS_"))
        if token.startswith("JMS") and not free:
            hint = nearest(token[:40], HEADER_NAMES, cutoff=0.8)
            reason = f"{quoted(str(token))} cannot stand in a selector (JMS 2.0, 3.8.1.1); {hint}"
            raise type_error(_offset(token), "header", reason)
        return SelectorField(str(token), offset=_offset(token))


def _denied(no: Token | None, test: Node) -> Node:
    return test if no is None else Not(test, offset=test.offset)


def _like(operand: Node, pattern: Token, escape: Token | None) -> Node:
    """Build a LIKE; an escape character precedes `%`, `_` or itself (SQL-92, 8.5)."""
    char = "" if escape is None else _unquoted(escape)
    if escape is not None and len(char) != 1:
        raise type_error(_offset(escape), "like", "an escape is one character")
    text = _unquoted(pattern)
    if char and char in re.sub(f"{re.escape(char)}[%_{re.escape(char)}]", "", text):
        raise type_error(_offset(pattern), "like", f"{char!r} escapes only '%', '_' and itself")
    if text.count("%") > MAX_WILDCARDS:
        raise type_error(_offset(pattern), "like", f"more than {MAX_WILDCARDS} '%' in one pattern")
    return Like(check_field(operand, "LIKE"), text, char, offset=operand.offset)


def _unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _offset(token: Token) -> int:
    return token.start_pos or 0
