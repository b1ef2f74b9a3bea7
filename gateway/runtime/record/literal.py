"""Reads the text of a value as Python writes it: any depth, infinities and NaN."""

from __future__ import annotations

import ast
import re
from typing import Final

from gateway.model.message import Value

_TOKEN: Final = re.compile(
    r"""[ ]*(?:([\[{(])|([\]})])|([,:])|(b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*"|[\w.+-]+))""",
    re.DOTALL,
)
_CLOSING: Final = {"[": "]", "{": "}", "(": ")"}


def read_literal(text: str) -> Value:
    """Return the value; its depth needs no stack, because a publisher chooses it.

    Raises:
        ValueError: the text is not a value.
        SyntaxError: a string or number in it is malformed.
    """
    outer: list[tuple[str, list[Value]]] = []
    kind, items = "", list[Value]()
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(f"no value at character {position}")
        position = token.end()
        opening, closing, _, scalar = token.groups()
        if opening:
            outer.append((kind, items))
            kind, items = opening, []
        elif closing:
            if _CLOSING.get(kind) != closing:
                raise ValueError(f"{closing!r} closes nothing")
            value = _container(kind, items)
            kind, items = outer.pop()
            items.append(value)
        elif scalar:
            items.append(_scalar(scalar))
    if kind or len(items) != 1:
        raise ValueError("the text is not one value")
    return items[0]


def _container(kind: str, items: list[Value]) -> Value:
    if kind == "[":
        return items
    if kind == "(":
        return tuple(items)
    return dict(zip(items[::2], items[1::2], strict=True))  # type: ignore[arg-type]


def _scalar(text: str) -> Value:
    if text.lstrip("+-") in {"inf", "nan"}:
        return float(text)
    value: Value = ast.literal_eval(text)
    return value
