"""Target templates: `erp/{region}/orders/{rest...}` makes a subject from captures; no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.dialects.base import Dialect, parse_subject
from gateway.errors import SubjectError
from gateway.model.subject import Subject
from gateway.routing.captures import CAPTURE, SourcePattern

_FIRST = 0xE000  # private use characters stand for captures while the text is parsed
_LAST = 0xF8FF
_STAND_IN = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")


@dataclass(frozen=True, slots=True)
class Hole:
    """The place of a capture in a level."""

    name: str


@dataclass(frozen=True, slots=True)
class Rest:
    """The place of a capture that takes any number of levels; it fills a level of its own."""

    name: str


Part = str | Hole
TemplateLevel = Rest | tuple[Part, ...]


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

    def expand(self, captures: Mapping[str, tuple[str, ...]]) -> Subject:
        """The subject for these captures; each is the levels that its wildcard took."""
        levels: list[str] = []
        for level in self.levels:
            if isinstance(level, Rest):
                levels += captures[level.name]
            else:
                parts = (
                    part if isinstance(part, str) else captures[part.name][0] for part in level
                )
                levels.append("".join(parts))
        return Subject(tuple(levels))


def parse_template(text: str, dialect: Dialect, source: SourcePattern) -> Template:
    """Read a template written in `dialect` that may use the captures of `source`.

    Raises:
        SubjectError: an illegal name, an unknown capture, a rest capture inside a level.
    """
    if (stray := _STAND_IN.search(text)) is not None:
        reason = "private use characters cannot stand in a template"
        raise SubjectError(dialect.name, text, stray.start(), "template", reason)
    spans = dict(source.spans)
    found = list(CAPTURE.finditer(text))
    for capture in found:
        if capture[1] not in spans:
            known = ", ".join(f"{{{name}}}" for name in spans) or "none"
            reason = f"unknown capture {capture[0]}; {source.text!r} has {known}"
            raise SubjectError(dialect.name, text, capture.start(), "unknown-capture", reason)
    order = iter(range(len(found)))
    subject = parse_subject(CAPTURE.sub(lambda _: chr(_FIRST + next(order)), text), dialect)
    names = [capture[1] for capture in found]
    rests = {name for name in names if spans[name].rest}
    return Template(
        text, tuple(_level(level, names, rests, text, dialect) for level in subject.levels)
    )


def _level(
    text: str, names: list[str], rests: set[str], template: str, dialect: Dialect
) -> TemplateLevel:
    parts: list[Part] = []
    position = 0
    for stand_in in _STAND_IN.finditer(text):
        if position < stand_in.start():
            parts.append(text[position : stand_in.start()])
        parts.append(Hole(names[ord(stand_in[0]) - _FIRST]))
        position = stand_in.end()
    if position < len(text) or not parts:
        parts.append(text[position:])
    for part in parts:
        if isinstance(part, Hole) and part.name in rests:
            if len(parts) == 1:
                return Rest(part.name)
            reason = f"{{{part.name}...}} takes any number of levels and must fill its own"
            raise SubjectError(dialect.name, template, 0, "rest-capture", reason)
    return tuple(parts)
