"""The functions of templates: `{region|upper}`, `{rest...|join:-}`; pure, and known by name.

A function takes the levels of a capture and makes levels, or the one text that `one` promises. Its
`injective` says whether two different inputs always stay different; whoever proves that a template
keeps names apart asks only that. Nothing here knows what a system can spell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from hashlib import blake2b
from types import MappingProxyType
from typing import TypeAlias

from gateway.errors import SubjectError, TranslationError, shown

Levels: TypeAlias = tuple[str, ...]
Run: TypeAlias = Callable[[Levels], Levels]

CHAIN = r"(?:\|(?:[^{}|\\]|\\.)*)*"  # what may follow a capture's name inside its braces
MOST_BUCKETS = 100_000
_CALL = re.compile(r"\|((?:[^|\\]|\\.)*)", re.DOTALL)
_WORD = re.compile(r"((?:[^:\\]|\\.)*)(?::|\Z)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
NUMBER = re.compile(r"[+-]?[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Place:
    """The text that holds a chain, and where the part in question begins; for errors."""

    where: str  # a dialect, or what else an error names first
    text: str
    offset: int = 0

    def fault(self, rule: str, reason: str, after: int = 0) -> SubjectError:
        return SubjectError(self.where, self.text, self.offset + after, rule, reason)


@dataclass(frozen=True, slots=True)
class Function:
    """One call with its arguments as written; `one` says that it makes a single level."""

    name: str
    arguments: tuple[str, ...]
    injective: bool
    one: bool
    run: Run = field(compare=False, repr=False)

    def apply(self, levels: Levels) -> Levels:
        """What becomes of a capture's levels.

        Raises:
            TranslationError: they have not what is asked for (`split` finds too few parts).
        """
        return self.run(levels)


class Takes(Enum):
    """How many levels a function works on."""

    ANY = "any number of levels"
    ONE = "one level"
    MANY = "a capture of any number of levels"


@dataclass(frozen=True, slots=True)
class _Kind:
    usage: str
    arguments: int
    make: Callable[[Sequence[str], bool], Run]  # raises ValueError for a wrong argument
    takes: Takes = Takes.ANY
    makes_one: bool = False


def parse_functions(chain: str, place: Place, *, one: bool) -> tuple[Function, ...]:
    r"""Read `|upper|slice:0:3`, which begins at `place`; `one`: the capture is a single level.

    In an argument a backslash stands before `:`, `|`, `{`, `}` and itself.

    Raises:
        SubjectError: an unknown function, wrong arguments, or levels it does not take.
    """
    found: list[Function] = []
    for call in _CALL.finditer(chain):
        words = [_ESCAPED.sub(r"\1", word) for word in _words(call[1])]
        at = Place(place.where, place.text, place.offset + call.start(1))
        function = _function(words[0], words[1:], at, one=one)
        one = function.one
        found.append(function)
    return tuple(found)


def run_all(functions: Sequence[Function], levels: Levels) -> Levels:
    """`levels` after every function in turn."""
    for function in functions:
        levels = function.run(levels)
    return levels


def _words(call: str) -> Iterator[str]:
    position, more = 0, True
    while more and (word := _WORD.match(call, position)) is not None:
        yield word[1]
        position, more = word.end(), word.end() > word.end(1)


def _function(name: str, arguments: Sequence[str], place: Place, *, one: bool) -> Function:
    kind = _KINDS.get(name)
    if kind is None:
        close = get_close_matches(name[:40], _KINDS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_KINDS)}"
        raise place.fault("unknown-function", f"unknown function {shown(name)}; {hint}")
    if len(arguments) != kind.arguments:
        reason = f"{name!r} has {len(arguments)} arguments; write {kind.usage}"
        raise place.fault("function-arguments", reason)
    if kind.takes is (Takes.MANY if one else Takes.ONE):
        hint = "" if one else "; join them first"
        raise place.fault("function-levels", f"{name!r} takes {kind.takes.value}{hint}")
    try:
        run = kind.make(arguments, one)
    except ValueError as error:
        raise place.fault("function-arguments", f"{error}; write {kind.usage}") from None
    whole = name == "slice" and arguments[0].strip("+-0") == "" and arguments[1] == ""
    return Function(name, tuple(arguments), whole, one or kind.makes_one, run)


def _case(change: Callable[[str], str]) -> Callable[[Sequence[str], bool], Run]:
    return lambda _words, _one: lambda levels: tuple(map(change, levels))


def _slice(arguments: Sequence[str], one: bool) -> Run:
    """Characters of one level, or levels of many."""
    part = slice(*(_number(word) if word else None for word in arguments))
    if one:
        return lambda levels: (levels[0][part],)
    return lambda levels: levels[part]


def _join(arguments: Sequence[str], _one: bool) -> Run:
    separator = arguments[0]
    return lambda levels: (separator.join(levels),)


def _split(arguments: Sequence[str], _one: bool) -> Run:
    separator, index = arguments[0], _number(arguments[1])
    if not separator:
        raise ValueError("the separator is empty")

    def run(levels: Levels) -> Levels:
        parts = levels[0].split(separator)
        if not -len(parts) <= index < len(parts):
            reason = f"{len(parts)} parts at {shown(separator)}, and none with index {index}"
            raise TranslationError("template", levels[0], "missing-part", reason)
        return (parts[index],)

    return run


def _bucket(arguments: Sequence[str], _one: bool) -> Run:
    """BLAKE2b of 8 bytes, the first the highest, over UTF-8; levels are joined with NUL."""
    buckets = _number(arguments[0])
    if not 1 <= buckets <= MOST_BUCKETS:
        raise ValueError(f"{buckets} buckets are outside 1..{MOST_BUCKETS}")

    def run(levels: Levels) -> Levels:
        data = "\0".join(levels).encode("utf-8", "surrogatepass")
        return (str(int.from_bytes(blake2b(data, digest_size=8).digest(), "big") % buckets),)

    return run


def _number(word: str) -> int:
    if NUMBER.fullmatch(word) is None:
        raise ValueError(f"{shown(word)} is no whole number of six digits at most")
    return int(word)


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "upper": _Kind("upper", 0, _case(str.upper)),
        "lower": _Kind("lower", 0, _case(str.lower)),
        "slice": _Kind("slice:START:END", 2, _slice),
        "join": _Kind("join:SEPARATOR", 1, _join, Takes.MANY, makes_one=True),
        "split": _Kind("split:SEPARATOR:INDEX", 2, _split, Takes.ONE, makes_one=True),
        "bucket": _Kind("bucket:NUMBER", 1, _bucket, makes_one=True),
    }
)
