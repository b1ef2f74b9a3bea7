"""Target templates: `erp/{region|upper}/orders/{rest...}` makes a subject from captures.

A placeholder in braces names a capture of the source pattern, a field of the message
(`{property.site}`) or a constant of the gateway (`{@system}`), with functions behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from gateway.dialects.base import Dialect, parse_subject
from gateway.dialects.names import check_joined, split_levels
from gateway.errors import SubjectError, TranslationError, quoted
from gateway.model.dead_letter_rule import FIELD
from gateway.model.subject import Subject
from gateway.routing.message_fields import FIELD_PATTERN, is_field
from gateway.routing.source_pattern import CAPTURE, NO_PATTERN, CaptureSpan, SourcePattern
from gateway.routing.template_functions import (
    FUNCTION_CHAIN,
    Levels,
    Report,
    TemplateFunction,
    TextLocation,
    apply_functions,
    parse_functions,
    refuse,
    reported,
    unescaped,
)

NO_CONSTANTS: Mapping[str, str] = MappingProxyType({})
MAX_PLACEHOLDERS = 1_000
_FIRST_STAND_IN = 0xE000  # private use characters stand for captures while the text is parsed
_STAND_IN = re.compile(f"[{chr(_FIRST_STAND_IN)}-\uf8ff]")
_PLACEHOLDER = re.compile(
    rf"\{{({FIELD_PATTERN}|@?[A-Za-z_][A-Za-z0-9_]*|[1-9][0-9]*)(\.\.\.)?({FUNCTION_CHAIN})\}}",
    re.DOTALL,
)
_BRACES = str.maketrans("{}", "xx")  # stray ones, which are reported
_DEFAULT = re.compile(r"\|default:((?:[^{}|\\]|\\.)*)", re.DOTALL)  # first of a field's chain


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A capture within a level; its `functions` make one level of it."""

    name: str
    functions: tuple[TemplateFunction, ...] = ()

    def fill(self, captures: Mapping[str, Levels]) -> str:
        """Return the text of the capture after its functions."""
        return apply_functions(self.functions, captures[self.name])[0]


@dataclass(frozen=True, slots=True)
class FieldPlaceholder:
    """A field of the message within a level; `default` stands for a missing one."""

    name: str
    functions: tuple[TemplateFunction, ...] = ()
    default: str | None = None

    def fill(self, captures: Mapping[str, Levels]) -> str:
        """Return the text of the field after its functions.

        Raises:
            TranslationError: with the rule `field`; there is no message, or no such field in it.
        """
        levels = captures.get(self.name)
        if levels is None:
            raise self._refused("is a field of a message, and there is only a name")
        if not levels and self.default is None:
            raise self._refused("is missing in the message")
        made = apply_functions(self.functions, levels or (self.default or "",))[0]
        if not made:
            raise self._refused("is empty after its functions")
        return made

    def _refused(self, reason: str) -> TranslationError:
        return TranslationError("field", f"{{{self.name}}}", FIELD, reason)


@dataclass(frozen=True, slots=True)
class RestPlaceholder:
    """A capture with any number of levels; it fills a level of its own."""

    name: str
    functions: tuple[TemplateFunction, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)


LevelPart: TypeAlias = str | Placeholder | FieldPlaceholder


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """One text, such as a level; `parts` are plain texts and placeholders, in order."""

    parts: tuple[LevelPart, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the captures in the template, in order."""
        return tuple(part.name for part in self.parts if not isinstance(part, str))

    @property
    def fields(self) -> tuple[FieldPlaceholder, ...]:
        """The fields of messages in the template, in order."""
        return tuple(part for part in self.parts if isinstance(part, FieldPlaceholder))

    def expand(self, captures: Mapping[str, Levels]) -> str:
        """Return the text for these captures.

        Raises:
            TranslationError: a function does not find the part that it needs.
        """
        return "".join(
            part if isinstance(part, str) else part.fill(captures) for part in self.parts
        )


TemplateLevel: TypeAlias = RestPlaceholder | TextTemplate


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: its text and its levels."""

    text: str
    levels: tuple[TemplateLevel, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the captures in the template, in order."""
        return tuple(name for level in self.levels for name in level.names)

    @property
    def fields(self) -> tuple[FieldPlaceholder, ...]:
        """The fields of messages in the template, in order."""
        texts = (level for level in self.levels if isinstance(level, TextTemplate))
        return tuple(each for level in texts for each in level.fields)

    def expand(self, captures: Mapping[str, Levels]) -> Subject:
        """Return the subject for these captures, each the levels of its wildcard.

        Raises:
            TranslationError: a function does not find the part that it needs.
        """
        levels: list[str] = []
        for level in self.levels:
            if isinstance(level, RestPlaceholder):
                levels += apply_functions(level.functions, captures[level.name])
            else:
                levels.append(level.expand(captures))
        return Subject(tuple(levels))


@dataclass(frozen=True, slots=True)
class FoundPlaceholder:
    """One pair of braces in a text; `part` is plain text when it names a constant."""

    start: int
    stop: int
    part: LevelPart | RestPlaceholder


def parse_template(  # a text, and all that it may use
    text: str,
    dialect: Dialect,
    source: SourcePattern,
    *,
    require_tags: Sequence[SourcePattern] = (),
    constants: Mapping[str, str] = NO_CONSTANTS,
    report: Report = refuse,
) -> Template:
    """Parse a template written in `dialect` that may use the captures of `source`.

    It may also use the named captures of the patterns in `require_tags`. `constants` are texts by
    name (`@system`). `report` gets the faults of placeholders instead of an exception; the template
    is of no use then.

    Raises:
        SubjectError: an illegal name, an unknown capture, a wrong function, a rest capture inside
            a level.
    """
    location = TextLocation(dialect.name, text)
    if (stray := _STAND_IN.search(text)) is not None:
        reason = "private use characters cannot stand in a template"
        raise location.error("template", reason, stray.start())
    found = list(
        find_placeholders(
            location, source, require_tags=require_tags, constants=constants, report=report
        )
    )
    plain, position = [], 0
    for number, placeholder in enumerate(found):
        plain += [
            text[position : placeholder.start].translate(_BRACES),
            chr(_FIRST_STAND_IN + number),
        ]
        position = placeholder.stop
    try:
        whole = "".join((*plain, text[position:].translate(_BRACES)))
        subject = parse_subject(whole, _with_stand_ins(dialect))
        check_joined(split_levels(_STAND_IN.sub("x", whole), dialect), text, dialect)
    except SubjectError as error:
        at = _original_offset(error.offset, found)
        raise location.error(error.rule, error.reason, at) from None
    return Template(text, tuple(_level(level, found, location) for level in subject.levels))


@cache
def _with_stand_ins(dialect: Dialect) -> Dialect:
    """Return the dialect with stand-ins among the characters of a name."""
    if not dialect.alphabet:
        return dialect
    return replace(dialect, alphabet=f"{dialect.alphabet}{chr(_FIRST_STAND_IN)}-\uf8ff")


def parse_text_template(
    location: TextLocation, source: SourcePattern, constants: Mapping[str, str] = NO_CONSTANTS
) -> TextTemplate:
    """Parse the text of `location`, which may use the captures of `source`.

    Raises:
        SubjectError: an unknown capture, a wrong function, a stray brace, or a capture of
            several levels that is not joined.
    """
    parts: list[LevelPart] = []
    position = 0
    for placeholder in find_placeholders(location, source, constants=constants):
        if isinstance(placeholder.part, RestPlaceholder):
            name = placeholder.part.name
            reason = f"{{{name}...}} is many levels; join them: {{{name}...|join:/}}"
            raise location.error("rest-capture", reason, placeholder.start)
        parts += [location.text[position : placeholder.start], placeholder.part]
        position = placeholder.stop
    parts.append(location.text[position:])
    return TextTemplate(tuple(part for part in parts if part != ""))


def assumed_captures(patterns: Sequence[str], templates: Iterable[str]) -> SourcePattern:
    """Return a pattern with the captures that `templates` may use where `patterns` are not legal.

    These are the names in `patterns`, and every number. Where a brace of them belongs to no
    capture, or where there are none, the names are not known: each that `templates` use is one.
    """
    known = {found[1] for text in patterns for found in CAPTURE.finditer(text)}
    complete = bool(patterns) and not any(
        re.search(r"[{}]", CAPTURE.sub("", text)) for text in patterns
    )
    spans: dict[str, CaptureSpan] = {}
    for found in (each for text in (*patterns, *templates) for each in _PLACEHOLDER.finditer(text)):
        name, rest = found[1], found[2] is not None
        if name.startswith("@") or is_field(name):
            continue
        if name in known or name.isdigit() or not complete:
            spans[name] = CaptureSpan(0, None, rest or (name in spans and spans[name].rest))
    return replace(NO_PATTERN, text=patterns[0] if patterns else "", spans=tuple(spans.items()))


def fields_in(text: str) -> Mapping[str, bool]:
    """Return the fields of a message in a text, and whether each has a default."""
    found = (each for each in _PLACEHOLDER.finditer(text) if is_field(each[1]))
    return {each[1]: _DEFAULT.match(each[3]) is not None for each in found}


def check_placeholders(
    text: str,
    source: SourcePattern,
    *,
    require_tags: Sequence[SourcePattern],
    constants: Mapping[str, str],
    report: Report,
) -> None:
    """Report the faults of the placeholders of a template whose dialect is not known.

    Raises:
        SubjectError: there are too many of them, or a function does not fit a constant.
    """
    for _ in find_placeholders(
        TextLocation("template", text),
        source,
        require_tags=require_tags,
        constants=constants,
        report=report,
    ):
        pass


def _original_offset(offset: int, found: Sequence[FoundPlaceholder]) -> int:
    """Convert an offset in the text with one character a placeholder to one in the original."""
    for placeholder in found:
        if offset > placeholder.start:
            offset += placeholder.stop - placeholder.start - 1
    return offset


def find_placeholders(
    location: TextLocation,
    source: SourcePattern,
    *,
    require_tags: Sequence[SourcePattern] = (),
    constants: Mapping[str, str] = NO_CONSTANTS,
    report: Report = refuse,
) -> Iterator[FoundPlaceholder]:
    """Yield the placeholders in the text of `location`, in order; see `parse_template`."""
    spans = {
        name: span.rest for each in require_tags for name, span in each.spans if not name.isdigit()
    }
    spans |= {name: span.rest for name, span in source.spans}
    text, position = location.text, 0
    for number, found in enumerate(_PLACEHOLDER.finditer(text)):
        _refuse_braces(location, position, found.start(), report)
        if number == MAX_PLACEHOLDERS:
            reason = f"more than {MAX_PLACEHOLDERS} captures"
            raise location.error("template", reason, found.start())
        name = found[1]
        if name not in spans and name not in constants and not is_field(name):
            hint = _known(name, source, [*spans, *constants])
            reason = f"unknown capture {quoted(found[0])}; {hint}"
            report(location.error("unknown-capture", reason, found.start()))
        rest = spans.get(name, False)
        default = _DEFAULT.match(found[3]) if is_field(name) else None
        start = default.end() if default else 0
        chain = TextLocation(location.dialect, text, found.start(3) + start)
        functions: tuple[TemplateFunction, ...] = ()
        with reported(report):
            functions = parse_functions(found[3][start:], chain, single_level=not rest)
        part: LevelPart | RestPlaceholder = Placeholder(name, functions)
        if is_field(name):
            part = FieldPlaceholder(name, functions, unescaped(default[1]) if default else None)
            if name.endswith("...") or part.default == "":
                reason = "a field is one level, and its default is a text that is not empty"
                report(location.error("template", reason, found.start()))
        elif rest and not any(function.single_level for function in functions):
            part = RestPlaceholder(name, functions)
        elif name in constants:
            part = _constant(constants[name], functions, chain)
        yield FoundPlaceholder(found.start(), found.end(), part)
        position = found.end()
    _refuse_braces(location, position, len(text), report)


def _known(name: str, source: SourcePattern, names: Sequence[str]) -> str:
    if close := get_close_matches(name[:40], names, n=1):
        return f"did you mean {{{close[0]}}}?"
    known = ", ".join(f"{{{each}}}" for each in names) or "none"
    return f"{quoted(source.text)} has {known}"


def _refuse_braces(location: TextLocation, start: int, stop: int, report: Report) -> None:
    if (brace := re.compile(r"[{}]").search(location.text, start, stop)) is not None:
        reason = (
            "a brace belongs to a capture: {name}, {name...} or {name|function}; or to a field of"
            " the message: {property.name} or {payload.key}"
        )
        report(location.error("template", reason, brace.start()))


def _constant(text: str, functions: Sequence[TemplateFunction], location: TextLocation) -> str:
    try:
        return apply_functions(functions, (text,))[0]
    except TranslationError as error:
        raise location.error(error.rule, error.reason) from None


def _level(text: str, found: Sequence[FoundPlaceholder], location: TextLocation) -> TemplateLevel:
    parts: list[LevelPart] = []
    position = 0
    for stand_in in _STAND_IN.finditer(text):
        if position < stand_in.start():
            parts.append(text[position : stand_in.start()])
        placeholder = found[ord(stand_in[0]) - _FIRST_STAND_IN]
        if not isinstance(placeholder.part, RestPlaceholder):
            parts.append(placeholder.part)
        elif stand_in.span() == (0, len(text)):
            return placeholder.part
        else:
            reason = (
                f"{{{placeholder.part.name}...}} takes any number of levels and must fill its own"
            )
            raise location.error("rest-capture", reason, placeholder.start)
        position = stand_in.end()
    if position < len(text) or not parts:
        parts.append(text[position:])
    return TextTemplate(tuple(parts))
