"""Target templates: `erp/{region|upper}/orders/{rest...}` makes a subject from captures; no I/O.

Braces hold a capture of the source pattern, or one of the gateway's own constants (`{@system}`),
with functions behind it. What a target cannot spell is for the renderer, not for this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import TypeAlias

from gateway.dialects.base import Dialect, parse_subject
from gateway.dialects.names import check_joined, split
from gateway.errors import SubjectError, TranslationError, shown
from gateway.model.subject import Subject
from gateway.routing.captures import SourcePattern
from gateway.routing.functions import (
    CHAIN,
    Function,
    Levels,
    Place,
    parse_functions,
    run_all,
)

NO_CONSTANTS: Mapping[str, str] = MappingProxyType({})
MOST_HOLES = 1_000
_FIRST = 0xE000  # private use characters stand for captures while the text is parsed
_STAND_IN = re.compile(f"[{chr(_FIRST)}-\uf8ff]")
_HOLE = re.compile(rf"\{{(@?[A-Za-z_][A-Za-z0-9_]*|[1-9][0-9]*)(\.\.\.)?({CHAIN})\}}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Hole:
    """The place of a capture in a level; after its `functions` it is one level."""

    name: str
    functions: tuple[Function, ...] = ()

    def fill(self, captures: Mapping[str, Levels]) -> str:
        return run_all(self.functions, captures[self.name])[0]


@dataclass(frozen=True, slots=True)
class Rest:
    """The place of a capture that takes any number of levels; it fills a level of its own."""

    name: str
    functions: tuple[Function, ...] = ()


Part: TypeAlias = str | Hole
TemplateLevel: TypeAlias = Rest | tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Template:
    text: str
    levels: tuple[TemplateLevel, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The captures it uses, in order."""
        found: list[str] = []
        for level in self.levels:
            if isinstance(level, Rest):
                found.append(level.name)
            else:
                found += [part.name for part in level if isinstance(part, Hole)]
        return tuple(found)

    def expand(self, captures: Mapping[str, Levels]) -> Subject:
        """The subject for these captures; each is the levels that its wildcard took.

        Raises:
            TranslationError: a function does not find in them what it asks for.
        """
        levels: list[str] = []
        for level in self.levels:
            if isinstance(level, Rest):
                levels += run_all(level.functions, captures[level.name])
            else:
                parts = (part if isinstance(part, str) else part.fill(captures) for part in level)
                levels.append("".join(parts))
        return Subject(tuple(levels))


@dataclass(frozen=True, slots=True)
class Found:
    """One pair of braces in a text; `part` is a text where it names a constant."""

    start: int
    stop: int
    part: Part | Rest


def parse_template(
    text: str,
    dialect: Dialect,
    source: SourcePattern,
    *,
    along: Sequence[SourcePattern] = (),
    constants: Mapping[str, str] = NO_CONSTANTS,
) -> Template:
    """Read a template written in `dialect` that may use the captures of `source`.

    `along` are patterns whose named captures it may use as well, `constants` texts by their names
    (`@system`).

    Raises:
        SubjectError: an illegal name, an unknown capture, a wrong function, a rest capture inside
            a level.
    """
    place = Place(dialect.name, text)
    if (stray := _STAND_IN.search(text)) is not None:
        reason = "private use characters cannot stand in a template"
        raise place.fault("template", reason, stray.start())
    found = list(find_holes(place, source, along=along, constants=constants))
    plain, position = [], 0
    for number, hole in enumerate(found):
        plain += [text[position : hole.start], chr(_FIRST + number)]
        position = hole.stop
    try:
        whole = "".join((*plain, text[position:]))
        subject = parse_subject(whole, dialect)
        check_joined(split(_STAND_IN.sub("x", whole), dialect), text, dialect)
    except SubjectError as error:
        at = _as_written(error.offset, found)
        raise place.fault(error.rule, error.reason, at) from None
    return Template(text, tuple(_level(level, found, place) for level in subject.levels))


def _as_written(offset: int, found: Sequence[Found]) -> int:
    """Where `offset` of the text with one character for each hole lies in the text."""
    for hole in found:
        if offset > hole.start:
            offset += hole.stop - hole.start - 1
    return offset


def find_holes(
    place: Place,
    source: SourcePattern,
    *,
    along: Sequence[SourcePattern] = (),
    constants: Mapping[str, str] = NO_CONSTANTS,
) -> Iterator[Found]:
    """Everything in braces in the text of `place`, in order; see `parse_template`."""
    spans = {name: span.rest for each in along for name, span in each.spans if not name.isdigit()}
    spans |= {name: span.rest for name, span in source.spans}
    text, position = place.text, 0
    for number, hole in enumerate(_HOLE.finditer(text)):
        _refuse_braces(place, position, hole.start())
        if number == MOST_HOLES:
            raise place.fault("template", f"more than {MOST_HOLES} captures", hole.start())
        if hole[1] not in spans and hole[1] not in constants:
            reason = (
                f"unknown capture {shown(hole[0])}; {_known(hole[1], source, [*spans, *constants])}"
            )
            raise place.fault("unknown-capture", reason, hole.start())
        rest = spans.get(hole[1], False)
        chain = Place(place.where, text, hole.start(3))
        functions = parse_functions(hole[3], chain, one=not rest)
        part: Part | Rest = Hole(hole[1], functions)
        if rest and not any(function.one for function in functions):
            part = Rest(hole[1], functions)
        elif hole[1] in constants:
            part = _constant(constants[hole[1]], functions, chain)
        yield Found(hole.start(), hole.end(), part)
        position = hole.end()
    _refuse_braces(place, position, len(text))


def _known(name: str, source: SourcePattern, names: Sequence[str]) -> str:
    if close := get_close_matches(name[:40], names, n=1):
        return f"did you mean {{{close[0]}}}?"
    known = ", ".join(f"{{{each}}}" for each in names) or "none"
    return f"{shown(source.text)} has {known}"


def _refuse_braces(place: Place, start: int, stop: int) -> None:
    if (brace := re.compile(r"[{}]").search(place.text, start, stop)) is not None:
        reason = "a brace belongs to a capture: {name}, {name...} or {name|function}"
        raise place.fault("template", reason, brace.start())


def _constant(text: str, functions: Sequence[Function], place: Place) -> str:
    try:
        return run_all(functions, (text,))[0]
    except TranslationError as error:
        raise place.fault(error.rule, error.reason) from None


def _level(text: str, found: Sequence[Found], place: Place) -> TemplateLevel:
    parts: list[Part] = []
    position = 0
    for stand_in in _STAND_IN.finditer(text):
        if position < stand_in.start():
            parts.append(text[position : stand_in.start()])
        hole = found[ord(stand_in[0]) - _FIRST]
        if not isinstance(hole.part, Rest):
            parts.append(hole.part)
        elif stand_in.span() == (0, len(text)):
            return hole.part
        else:
            reason = f"{{{hole.part.name}...}} takes any number of levels and must fill its own"
            raise place.fault("rest-capture", reason, hole.start)
        position = stand_in.end()
    if position < len(text) or not parts:
        parts.append(text[position:])
    return tuple(parts)
