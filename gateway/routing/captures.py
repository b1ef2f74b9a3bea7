"""Source patterns with captures: `orders.{region}.{rest...}` selects and takes apart; no I/O.

A capture fills a whole level and stands for a wildcard of the dialect it is written in:
`{name}` for the one-level wildcard, `{name...}` for the rest-of-name wildcard. Wildcards written
as such are captures too, numbered from 1 over all wildcards of the pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway.dialects.base import Dialect, parse_pattern, share_of
from gateway.errors import SubjectError
from gateway.model.matching import matches
from gateway.model.pattern import Pattern

CAPTURE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*|[1-9][0-9]*)(\.\.\.)?\}")
_FUNCTION = re.compile(r"\{@?[A-Za-z0-9_]+(?:\.\.\.)?\|")


@dataclass(frozen=True, slots=True)
class Span:
    """Which levels a capture takes; negative counts from the end, `stop` is None for the end."""

    start: int
    stop: int | None
    rest: bool  # any number of levels, where False is exactly one


@dataclass(frozen=True, slots=True)
class SourcePattern:
    """What a route listens to: `subscription` for the broker, `patterns` and `depth` to decide."""

    text: str
    subscription: str
    patterns: tuple[Pattern, ...]
    depth: int | None  # exact number of levels, where the broker's wildcard takes more
    spans: tuple[tuple[str, Span], ...]
    share: str = ""  # what `text` begins with where several gateways divide the messages (MQTT)

    def selects(self, levels: tuple[str, ...]) -> bool:
        if self.depth is not None and len(levels) != self.depth:
            return False
        return any(matches(pattern, levels) for pattern in self.patterns)

    def capture(self, levels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """The levels each capture takes from a subject that `selects` accepts."""
        return {name: levels[span.start : span.stop] for name, span in self.spans}


def parse_source(text: str, dialect: Dialect) -> SourcePattern:
    """Read a source pattern written in `dialect`.

    Raises:
        SubjectError: not a legal pattern once its captures are wildcards, a capture that does
            not fill its level, or a name that is used twice.
    """
    names = _names(text, dialect)
    plain = CAPTURE.sub(lambda c: dialect.any_many if c[2] else dialect.any_one, text)
    try:
        patterns = parse_pattern(plain, dialect)
        share = share_of(plain, dialect)
    except SubjectError as error:
        at = _as_written(error.offset, text, dialect)
        raise SubjectError(dialect.name, text, at, error.rule, error.reason) from None
    names = {at - share.count(dialect.separator): name for at, name in names.items()}
    parts = _split(plain.removeprefix(share), dialect)
    braced = CAPTURE.sub(lambda c: "{...}" if c[2] else "{}", text)
    written = _split(braced.removeprefix(share), dialect)
    rests = [i for i, part in enumerate(parts) if _is_rest(part, written[i], i, parts, dialect)]
    depth = len(parts) if written[-1] == "{}" and not rests else None
    spans = tuple(_spans(names, parts, rests, dialect))
    return SourcePattern(text, plain, patterns, depth, spans, share)


def _names(text: str, dialect: Dialect) -> dict[int, str]:
    """Capture names by level, once each is known to fill its level."""
    names: dict[int, str] = {}
    for found in CAPTURE.finditer(text):
        before, after = text[: found.start()], text[found.end() :]
        whole = (not before or before.endswith(dialect.separator)) and (
            not after or after.startswith(dialect.separator)
        )
        if not whole:
            reason = f"{found[0]} does not fill its level"
            raise SubjectError(dialect.name, text, found.start(), "capture", reason)
        if found[1] in names.values():
            reason = f"{found[1]!r} names two captures"
            raise SubjectError(dialect.name, text, found.start(), "capture", reason)
        names[len(_split(before + "x", dialect)) - 1] = found[1]
    if (brace := re.search(r"[{}]", CAPTURE.sub(lambda c: "x" * len(c[0]), text))) is not None:
        reason = "a brace belongs to a capture: {name} or {name...}"
        if _FUNCTION.match(text, brace.start()) is not None:
            reason = "functions belong into a template; a source pattern only captures"
        raise SubjectError(dialect.name, text, brace.start(), "capture", reason)
    return names


def _as_written(offset: int, text: str, dialect: Dialect) -> int:
    """Where `offset` of the plain pattern lies in the text with its captures."""
    for capture in CAPTURE.finditer(text):
        if offset <= capture.start():
            break
        wildcard = dialect.any_many if capture[2] else dialect.any_one
        offset = max(capture.start(), offset + len(capture[0]) - len(wildcard))
    return offset


def _split(text: str, dialect: Dialect) -> list[str]:
    return text.removeprefix(dialect.leading).split(dialect.separator)


def _is_rest(part: str, written: str, index: int, parts: list[str], dialect: Dialect) -> bool:
    if part != dialect.any_many:
        return False
    if dialect.any_many != dialect.any_one:
        return True
    return index == len(parts) - 1 and written != "{}"  # YAMI4: only a last star takes the rest


def _spans(
    names: dict[int, str], parts: list[str], rests: list[int], dialect: Dialect
) -> list[tuple[str, Span]]:
    """Every capture whose place is certain; with two rest wildcards those between are not."""
    spans: list[tuple[str, Span]] = []
    number = 0
    size = len(parts)
    for index, part in enumerate(parts):
        if index not in names and dialect.any_one not in part and index not in rests:
            continue
        number += 1
        if not rests or index < rests[0]:
            span = Span(index, index + 1, rest=False)
        elif index > rests[-1]:
            span = Span(index - size, index - size + 1 or None, rest=False)
        elif rests == [index]:
            span = Span(index, index + 1 - size or None, rest=True)
        else:
            continue
        spans += [(word, span) for word in dict.fromkeys((names.get(index), str(number))) if word]
    return spans
