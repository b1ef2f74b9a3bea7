"""Whether the configuration would take a route; decided by the parsers that will read it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gateway.dialects.base import Dialect, matches_text, parse_pattern
from gateway.errors import LimitError, SubjectError, TranslationError
from gateway.model.language import covers, overlaps
from gateway.routing.captures import parse_source
from gateway.routing.template import parse_template

BRACES = "{}"


def route_fault(
    pattern: str, template: str, dialect: Dialect, exclude: Sequence[str] = ()
) -> str | None:
    """Why a route between two endpoints of one dialect cannot be written; None when it can."""
    try:
        source = parse_source(pattern, dialect)
        for each in exclude:
            parse_source(each, dialect)
        parse_template(template, dialect, source)
    except (SubjectError, TranslationError) as error:
        return str(error)
    return None


def brace_fault(name: str) -> str | None:
    """Why a foreign name cannot be written: in a mapping its braces would be a capture."""
    if any(brace in name for brace in BRACES):
        return f"{name!r} has a brace, which a mapping reads as a capture"
    return None


def may_overlap(one: str, other: str, dialect: Dialect) -> bool:
    """Whether some name is selected by both patterns, both legal; True when it takes too long."""
    if _part_ways(one, other, dialect):
        return False
    try:
        return overlaps(parse_pattern(one, dialect), parse_pattern(other, dialect))
    except LimitError:
        return True


def covered(pattern: str, others: Sequence[str], dialect: Dialect) -> bool:
    """Whether `others` together select all that `pattern` does; False when it takes too long."""
    wide = [each for other in others for each in parse_pattern(other, dialect)]
    try:
        return covers(wide, parse_pattern(pattern, dialect))
    except LimitError:
        return False


def takes(pattern: str, name: str, dialect: Dialect) -> bool:
    """Whether a legal pattern selects a legal name."""
    return not _part_ways(pattern, name, dialect) and matches_text(pattern, name, dialect)


def _part_ways(one: str, other: str, dialect: Dialect) -> bool:
    """Whether two words at one level differ before any wildcard; most pairs are told apart here."""
    for a, b in zip(*(_levels(each, dialect.separator) for each in (one, other)), strict=False):
        if dialect.any_many in {a, b}:
            return False
        if a != b and dialect.any_one not in {a, b}:
            return True
    return False


@lru_cache(maxsize=8_192)
def _levels(text: str, separator: str) -> tuple[str, ...]:
    return tuple(text.split(separator))
