"""The functions of templates: `{region|upper}`, `{rest...|join:-}`.

A function maps the levels of a capture to levels. It is injective when two different inputs always
give two different results; the proofs rely on this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from typing import TypeAlias

from gateway.errors import SubjectError, TranslationError, nearest, quoted
from gateway.model.dead_letter_rule import MISSING_PART

Levels: TypeAlias = tuple[str, ...]
LevelFunction: TypeAlias = Callable[[Levels], Levels]

FUNCTION_CHAIN = r"(?:\|(?:[^{}|\\]|\\.)*)*"  # the text between a capture's name and the brace
MAX_BUCKETS = 100_000
_CALL = re.compile(r"\|((?:[^|\\]|\\.)*)", re.DOTALL)
_WORD = re.compile(r"((?:[^:\\]|\\.)*)(?::|\Z)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
INTEGER = re.compile(r"[+-]?[0-9]{1,6}")


Report: TypeAlias = Callable[[SubjectError], None]  # takes each fault of a text that has several


def refuse(error: SubjectError) -> None:
    """Raise the first fault.

    Raises:
        SubjectError: always.
    """
    raise error


@contextmanager
def reported(report: Report) -> Iterator[None]:
    """Give `report` the fault of one part, so that the other parts are read as well."""
    try:
        yield
    except SubjectError as error:
        report(error)


@dataclass(frozen=True, slots=True)
class TextLocation:
    """A text and an offset in it, for error messages."""

    dialect: str  # the dialect, or another word that the error begins with
    text: str
    offset: int = 0

    def error(self, rule: str, reason: str, after: int = 0) -> SubjectError:
        """Return the error for `after` characters behind the offset."""
        return SubjectError(self.dialect, self.text, self.offset + after, rule, reason)


@dataclass(frozen=True, slots=True)
class TemplateFunction:
    """One call with its arguments as written; `single_level`: its result is one level."""

    name: str
    arguments: tuple[str, ...]
    injective: bool
    single_level: bool
    run: LevelFunction = field(compare=False, repr=False)


class AcceptedLevels(Enum):
    """The captures that a function accepts, by their number of levels."""

    ANY = "any number of levels"
    ONE = "one level"
    MANY = "a capture of any number of levels"


@dataclass(frozen=True, slots=True)
class _FunctionType:
    usage: str  # one word for each argument behind the name
    make: Callable[[Sequence[str], bool], LevelFunction]  # raises ValueError for a wrong argument
    accepts: AcceptedLevels = AcceptedLevels.ANY
    joins: bool = False  # the result is one level


def parse_functions(
    chain: str, location: TextLocation, *, single_level: bool
) -> tuple[TemplateFunction, ...]:
    r"""Parse `|upper|slice:0:3`, which begins at `location`.

    `single_level` says that the capture is one level. In an argument a backslash escapes `:`, `|`,
    `{`, `}` and itself.

    Raises:
        SubjectError: an unknown function, wrong arguments, or levels that it does not accept.
    """
    found: list[TemplateFunction] = []
    for call in _CALL.finditer(chain):
        words = [unescaped(word) for word in _words(call[1])]
        at = TextLocation(location.dialect, location.text, location.offset + call.start(1))
        function = _function(words[0], words[1:], at, single_level=single_level)
        single_level = function.single_level
        found.append(function)
    return tuple(found)


def apply_functions(functions: Sequence[TemplateFunction], levels: Levels) -> Levels:
    """Apply every function in turn to the levels of a capture.

    Raises:
        TranslationError: the levels lack what a function needs (`split`: too few parts).
    """
    for function in functions:
        levels = function.run(levels)
    return levels


def unescaped(word: str) -> str:
    """Return an argument without its backslashes."""
    return _ESCAPED.sub(r"\1", word)


def _words(call: str) -> Iterator[str]:
    position, more = 0, True
    while more and (word := _WORD.match(call, position)) is not None:
        yield word[1]
        position, more = word.end(), word.end() > word.end(1)


def _function(
    name: str, arguments: Sequence[str], location: TextLocation, *, single_level: bool
) -> TemplateFunction:
    known = _FUNCTION_TYPES.get(name)
    if known is None:
        reason = f"unknown function {quoted(name)}; {nearest(name[:40], _FUNCTION_TYPES)}"
        raise location.error("unknown-function", reason)
    if len(arguments) != known.usage.count(":"):
        reason = f"{name!r} has {len(arguments)} arguments; write {known.usage}"
        raise location.error("function-arguments", reason)
    if known.accepts is (AcceptedLevels.MANY if single_level else AcceptedLevels.ONE):
        hint = "" if single_level else "; join them first"
        raise location.error("function-levels", f"{name!r} takes {known.accepts.value}{hint}")
    try:
        run = known.make(arguments, single_level)
    except ValueError as error:
        raise location.error("function-arguments", f"{error}; write {known.usage}") from None
    injective = name == "slice" and arguments[0].strip("+-0") == "" and arguments[1] == ""
    return TemplateFunction(name, tuple(arguments), injective, single_level or known.joins, run)


def _case(change: Callable[[str], str]) -> Callable[[Sequence[str], bool], LevelFunction]:
    return lambda _arguments, _single_level: lambda levels: tuple(map(change, levels))


def _slice(arguments: Sequence[str], single_level: bool) -> LevelFunction:
    """Slice the characters of one level, or the levels of many."""
    part = slice(*(_number(word) if word else None for word in arguments))
    if single_level:
        return lambda levels: (levels[0][part],)
    return lambda levels: levels[part]


def _join(arguments: Sequence[str], _single_level: bool) -> LevelFunction:
    separator = arguments[0]
    return lambda levels: (separator.join(levels),)


def _split(arguments: Sequence[str], _single_level: bool) -> LevelFunction:
    separator, index = arguments[0], _number(arguments[1])
    if not separator:
        raise ValueError("the separator is empty")

    def run(levels: Levels) -> Levels:
        parts = levels[0].split(separator)
        if not -len(parts) <= index < len(parts):
            reason = f"{len(parts)} parts at {quoted(separator)}, and none with index {index}"
            raise TranslationError("template", levels[0], MISSING_PART, reason)
        return (parts[index],)

    return run


def _bucket(arguments: Sequence[str], _single_level: bool) -> LevelFunction:
    """Number levels by BLAKE2b: 8 bytes, big-endian, over UTF-8 with NUL between levels."""
    buckets = _number(arguments[0])
    if not 1 <= buckets <= MAX_BUCKETS:
        raise ValueError(f"{buckets} buckets are outside 1..{MAX_BUCKETS}")

    def run(levels: Levels) -> Levels:
        data = "\0".join(levels).encode("utf-8", "surrogatepass")
        return (str(int.from_bytes(blake2b(data, digest_size=8).digest(), "big") % buckets),)

    return run


def _number(word: str) -> int:
    if INTEGER.fullmatch(word) is None:
        raise ValueError(f"{quoted(word)} is not an integer of at most six digits")
    return int(word)


_FUNCTION_TYPES: Mapping[str, _FunctionType] = {
    "upper": _FunctionType("upper", _case(str.upper)),
    "lower": _FunctionType("lower", _case(str.lower)),
    "slice": _FunctionType("slice:START:END", _slice),
    "join": _FunctionType("join:SEPARATOR", _join, AcceptedLevels.MANY, joins=True),
    "split": _FunctionType("split:SEPARATOR:INDEX", _split, AcceptedLevels.ONE, joins=True),
    "bucket": _FunctionType("bucket:NUMBER", _bucket, joins=True),
}
