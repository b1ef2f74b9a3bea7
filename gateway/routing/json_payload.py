"""JSON of a payload as values, within bounds that hold wherever the gateway reads one.

A number is a double or has 64 bits, an object has each key once, and nothing is nested deeper than
`MAX_DEPTH`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from gateway.model.message import Value
from gateway.routing.selectors.ast import LONG_MAX, LONG_MIN

MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 19  # of a 64-bit integer
TOO_DEEP: Final = f"is nested deeper than {MAX_DEPTH}"
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a surrogate pair: no character, and without UTF-8
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJsonError(ValueError):
    """A text is not JSON."""


def _double(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is past what a double holds")
    return number


def _long(text: str) -> int:
    if len(text) > MAX_DIGITS + 1 or not LONG_MIN <= int(text) <= LONG_MAX:
        raise ValueError("a whole number is past 64 bits")
    return int(text)


def load_json(
    text: str,
    *,
    parse_int: Callable[[str], Value] = _long,
    parse_float: Callable[[str], Value] = _double,
) -> Value:
    """Return the value of a JSON text; `parse_int` and `parse_float` read its numbers.

    Raises:
        NotJsonError: it is not JSON.
        ValueError: it is past a bound. The text of both errors is a predicate, without the payload.
    """
    try:
        found: Value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_float=parse_float,
            parse_int=parse_int,
        )
        if _SURROGATE.search(text) is not None or _ESCAPED_SURROGATE.search(text) is not None:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise NotJsonError(f"is not JSON: {error.msg} at {error.pos}") from None
    except UnicodeEncodeError:
        raise ValueError("holds half a character") from None
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        refuse_depth(found)
    return found


def refuse_depth(value: Value) -> None:
    """Raise for a value nested too deep; iterates by level, because the depth has no bound.

    Raises:
        ValueError: it is.
    """
    level: list[Value] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _object(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _no_number(_: str) -> NoReturn:
    raise ValueError("NaN and infinities are not JSON")


def _inside(value: Value) -> list[Value]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
