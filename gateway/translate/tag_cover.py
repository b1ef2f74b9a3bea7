"""Covers as YAMI4 tags, in which a last star takes one or more characters, dots included."""

from __future__ import annotations

from gateway.dialects.tags import read_tag_pattern
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.translate.pattern_cover import Levels

Reasons = tuple[str, ...]


def tag_covers(levels: Levels, reasons: Reasons) -> list[tuple[str, Reasons]]:
    """Return the tags that select everything `levels` select, with their surplus in words."""
    if all(isinstance(level, Literal) for level in levels):
        return [_literal(levels, reasons)]
    words = [_tag_component(level) for level in levels]
    without_stars = tuple(_without_star(level) for level in levels[:-1])
    if without_stars != levels[:-1]:
        reasons = (*reasons, "has a component with a star in it")
    before = "".join(f"{word}." for word in words[:-1])
    last = levels[-1]
    depth = f"has {len(levels)} components"
    match last:
        case AnyMany():
            empty = [(before, reasons)] if before else []
            return [(f"{before}*", reasons), *empty]
        case AnyOne():
            empty = [(before, (*reasons, depth))] if before else []
            return [(f"{before}*", (*reasons, depth)), *empty]
        case Glob(parts):
            return [(f"{before}{parts[0]}*", (*reasons, depth)), (before + parts[0], reasons)]
        case Literal(text) if "*" in text:
            start = text.partition("*")[0]
            return [(f"{before}{start}*", (*reasons, f"ends with {text!r}"))]
        case Literal(text):
            return [(before + text, reasons)]


def _literal(levels: Levels, reasons: Reasons) -> tuple[str, Reasons]:
    """Return the tag of a name: equal texts match, even if the text contains stars."""
    text = ".".join(_tag_component(level, literal=True) for level in levels)
    if read_tag_pattern(text) == (Pattern(levels),):
        return text, reasons
    return text, (*reasons, f"is {text!r}")


def _without_star(level: Level) -> Level:
    if isinstance(level, Literal) and "*" in level.text:
        start = level.text.partition("*")[0]
        return Glob((start, "")) if start else AnyOne()
    return level


def _tag_component(level: Level, *, literal: bool = False) -> str:
    match level:
        case Literal(text) if literal or "*" not in text:
            return text
        case Literal(text):
            return text.partition("*")[0] + "*"
        case Glob(parts):
            return parts[0] + "*"
        case _:
            return "*"
