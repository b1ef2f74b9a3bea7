"""Source patterns with captures: `orders.{region}.{rest...}` selects names and captures levels.

A capture fills a whole level and stands for a wildcard of its dialect: `{name}` for the one-level
wildcard, `{name...}` for the rest wildcard. A plain wildcard is a capture too. Captures are
numbered from 1 over all wildcards of the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeVar

from gateway.dialects.base import Dialect, parse_pattern, read_pattern, shared_prefix_of
from gateway.dialects.parts import BOUNDARY, divided
from gateway.errors import SubjectError
from gateway.model.matching import admits, matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern

T = TypeVar("T")
CAPTURE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*|[1-9][0-9]*)(\.\.\.)?\}")
NO_MATCH: Final = "the pattern does not match"
_EXCLUDED: Final = "which a wildcard does not select"
_FUNCTION = re.compile(r"\{@?[A-Za-z0-9_]+(?:\.\.\.)?\|")


class NamePart(Enum):
    """The part of a name that a capture is a slice of."""

    WHOLE = "name"
    TOPIC = "topic"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class CaptureSpan:
    """The levels that a capture takes, as a slice of its part: `levels[start:stop]`."""

    start: int
    stop: int | None
    rest: bool  # True: any number of levels; False: exactly one
    part: NamePart = NamePart.WHOLE

    def taken(self, levels: Sequence[T]) -> Sequence[T]:
        """Return the levels of the capture; `levels` are those of a name or of a pattern."""
        if self.part is not NamePart.WHOLE:
            topic, _, key = divided(levels)
            levels = topic if self.part is NamePart.TOPIC else key
        return levels[self.start : self.stop]


@dataclass(frozen=True, slots=True)
class SourcePattern:
    """A parsed source pattern: the subscription for the broker and the patterns that select names.

    `depth` is the exact number of levels, for a broker whose wildcard selects more (YAMI4).
    `share` is the prefix of a shared subscription (MQTT `$share/GROUP/`), which `text` begins with.
    `parts`: the pattern has a topic, and a key or none, each with captures of its own.
    """

    text: str
    subscription: str
    patterns: tuple[Pattern, ...]
    depth: int | None
    spans: tuple[tuple[str, CaptureSpan], ...]
    share: str = ""
    parts: bool = False

    @property
    def numbers_of_named(self) -> frozenset[str]:
        """The numbers of the captures that have a name as well."""
        with_name = [span for name, span in self.spans if not name.isdigit()]
        return frozenset(n for n, span in self.spans if n.isdigit() and span in with_name)

    def selects(self, levels: tuple[str, ...]) -> bool:
        """Return whether the pattern selects a name with these levels."""
        if self.depth is not None and len(levels) != self.depth:
            return False
        return any(matches(pattern, levels) for pattern in self.patterns)

    def mismatch(self, levels: tuple[str, ...]) -> str:
        """Return why the pattern does not select a name, with the first level that differs.

        Patterns of a topic and a key, and those with levels after a rest wildcard, have none.
        """
        difference = "" if self.parts else _difference(self.patterns[0], self.depth, levels)
        return f"{NO_MATCH}: {difference}" if difference else NO_MATCH

    def capture(self, levels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Return the levels of each capture, for a name that `selects` accepts."""
        if self.parts:
            return {name: tuple(span.taken(levels)) for name, span in self.spans}
        return {name: levels[span.start : span.stop] for name, span in self.spans}


def _difference(pattern: Pattern, depth: int | None, levels: tuple[str, ...]) -> str:
    """Return where a name that `pattern` does not select differs from it; "" if unknown."""
    parts = pattern.levels
    for at, (part, level) in enumerate(zip(parts, levels, strict=False), start=1):
        if isinstance(part, AnyMany):
            break
        if not admits(part, level, pattern.exclusions, first=at == 1):
            return f"level {at} is {level!r}, {_instead(part, level)}"
    rests = [part for part in parts if isinstance(part, AnyMany)]
    least = len(parts) - len(rests) + sum(part.minimum for part in rests)
    has = f"the name has {len(levels)} {'level' if len(levels) == 1 else 'levels'}, the pattern"
    if depth is not None or not rests:
        return f"{has} {depth or least}"
    if len(levels) < least:
        return f"{has} at least {least}"
    if len(parts) == 1:  # only a rest wildcard: it selects all but the levels that it excludes
        return f"level 1 is {levels[0]!r}, {_EXCLUDED}"
    return ""


def _instead(part: Literal | Glob | AnyOne, level: str) -> str:
    if isinstance(part, AnyOne):
        return _EXCLUDED
    text = part.text if isinstance(part, Literal) else "*".join(part.parts)
    case = " (differs in case)" if text.casefold() == level.casefold() else ""
    return f"the pattern has {text!r}{case}"


NO_PATTERN: Final = SourcePattern("", "", (), None, ())


def named(captures: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the captures that have a name and not only a number."""
    return {name: found for name, found in captures.items() if not name.isdigit()}


def parse_source(text: str, dialect: Dialect) -> SourcePattern:
    """Parse a source pattern written in `dialect`.

    Raises:
        SubjectError: the pattern is illegal with wildcards in place of its captures, a capture
            does not fill its level, or two captures have one name.
    """
    if dialect.key is not None:
        return _parse_parts(text, dialect, dialect.key)
    names = _capture_names(text, dialect)
    plain = CAPTURE.sub(lambda c: dialect.any_many if c[2] else dialect.any_one, text)
    try:
        patterns = parse_pattern(plain, dialect)
        share = shared_prefix_of(plain, dialect)
    except SubjectError as error:
        at = _original_offset(error.offset, text, dialect)
        raise SubjectError(dialect.name, text, at, error.rule, error.reason) from None
    names = {at - share.count(dialect.separator): name for at, name in names.items()}
    levels = _split_levels(plain.removeprefix(share), dialect)
    braced = CAPTURE.sub(lambda c: "{rest}" if c[2] else "{}", text)
    written = _split_levels(braced.removeprefix(share), dialect)
    wild, rests = _wildcards(plain, levels, dialect, whole=written[-1] == "{}")
    for at, level in enumerate(written):  # SMF and YAMI4 have no error for such a text
        if level == "{rest}" and at not in rests:
            found = f"{{{names[at]}...}}"
            reason = f"{found} takes the rest of a name and is not last"
            raise SubjectError(dialect.name, text, text.index(found), "wildcard-not-last", reason)
    depth = len(levels) if written[-1] == "{}" and not rests else None
    spans = tuple(_capture_spans(names, wild, rests, len(levels)))
    return SourcePattern(text, plain, patterns, depth, spans, share)


def _parse_parts(text: str, dialect: Dialect, rules: Dialect) -> SourcePattern:
    """Parse the patterns of a topic and of its key; `rules` are those of the key."""
    topic, between, key = text.partition(BOUNDARY)
    start = 0
    try:
        above = parse_source(topic, dialect.topic)
        start = len(topic) + len(between)
        below = parse_source(key, rules) if key else NO_PATTERN
        plain = f"{above.subscription}{between}{below.subscription}"
        patterns = parse_pattern(plain, dialect)
    except SubjectError as error:
        at = start + error.offset
        raise SubjectError(dialect.name, text, at, error.rule, error.reason) from None
    wildcards = len({span for _, span in above.spans})
    spans = {name: replace(span, part=NamePart.TOPIC) for name, span in above.spans}
    for name, span in below.spans:
        word = str(int(name) + wildcards) if name.isdigit() else name
        if word in spans:
            reason = f"{word!r} names two captures"
            raise SubjectError(dialect.name, text, start, "capture", reason)
        spans[word] = replace(span, part=NamePart.KEY)
    return SourcePattern(text, plain, patterns, None, tuple(spans.items()), parts=True)


def _capture_names(text: str, dialect: Dialect) -> dict[int, str]:
    """Return the capture names by level index.

    Raises:
        SubjectError: a capture does not fill its level, or two captures have one name.
    """
    names: dict[str, int] = {}
    level, counted = 0, len(dialect.leading) if text.startswith(dialect.leading) else 0
    for found in CAPTURE.finditer(text):
        start, end = found.span()
        fills_level = (start == 0 or text.endswith(dialect.separator, 0, start)) and (
            end == len(text) or text.startswith(dialect.separator, end)
        )
        if not fills_level:
            reason = f"{found[0]} does not fill its level"
            raise SubjectError(dialect.name, text, start, "capture", reason)
        if found[1] in names:
            reason = f"{found[1]!r} names two captures"
            raise SubjectError(dialect.name, text, start, "capture", reason)
        level, counted = level + text.count(dialect.separator, counted, start), end
        names[found[1]] = level
    if (brace := re.search(r"[{}]", CAPTURE.sub(lambda c: "x" * len(c[0]), text))) is not None:
        reason = "a brace belongs to a capture: {name} or {name...}"
        if _FUNCTION.match(text, brace.start()) is not None:
            reason = "functions are legal in a template only; a source pattern has captures"
        raise SubjectError(dialect.name, text, brace.start(), "capture", reason)
    return {level: name for name, level in names.items()}


def _original_offset(offset: int, text: str, dialect: Dialect) -> int:
    """Convert an offset in the pattern with wildcards to an offset in the text with captures."""
    for capture in CAPTURE.finditer(text):
        if offset <= capture.start():
            break
        wildcard = dialect.any_many if capture[2] else dialect.any_one
        offset = max(capture.start(), offset + len(capture[0]) - len(wildcard))
    return offset


def _split_levels(text: str, dialect: Dialect) -> list[str]:
    return text.removeprefix(dialect.leading).split(dialect.separator)


def _wildcards(
    plain: str, levels: list[str], dialect: Dialect, *, whole: bool
) -> tuple[list[int], list[int]]:
    """Return the indexes of the levels with wildcards, and of the rest wildcards among them.

    Their characters may be ordinary ones within a level. `whole`: a capture fills the last level.
    """
    if dialect.tag_lists:  # YAMI4: only a last star is a rest
        wild = [at for at, level in enumerate(levels) if dialect.any_one in level]
        return wild, [len(levels) - 1] if levels[-1] == dialect.any_many and not whole else []
    (parsed,) = read_pattern(plain, dialect)
    wild = [at for at, level in enumerate(parsed.levels) if not isinstance(level, Literal)]
    return wild, [at for at in wild if isinstance(parsed.levels[at], AnyMany)]


def _capture_spans(
    names: dict[int, str], wild: list[int], rests: list[int], size: int
) -> list[tuple[str, CaptureSpan]]:
    """Return each capture with a certain position; between two rest wildcards there is none."""
    spans: list[tuple[str, CaptureSpan]] = []
    for number, index in enumerate(wild, 1):
        if not rests or index < rests[0]:
            span = CaptureSpan(index, index + 1, rest=False)
        elif index > rests[-1]:
            span = CaptureSpan(index - size, index - size + 1 or None, rest=False)
        elif rests == [index]:
            span = CaptureSpan(index, index + 1 - size or None, rest=True)
        else:
            continue
        spans += [(word, span) for word in dict.fromkeys((names.get(index), str(number))) if word]
    return spans
