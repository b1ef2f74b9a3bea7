"""YAMI4 subscriptions as patterns over components; see "facts" of the tag rule in `docs/dialects`.

The rule, character by character: a star that ends the tag takes one character or more, dots too;
any other star takes all up to the next dot and gives nothing back. So a star before another
character than a dot makes a tag that matches nothing, but itself: two equal texts always match.
"""

from __future__ import annotations

from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern


def read_tag_pattern(text: str) -> tuple[Pattern, ...]:
    """What a subscription's tag list selects of a message with one tag."""
    found = read_any_tag(text)
    if "," not in text:
        levels = text.split(".")
        if not any(matches(pattern, levels) for pattern in found):
            return (*found, Pattern(tuple(map(Literal, levels))))
    return found


def read_any_tag(text: str) -> tuple[Pattern, ...]:
    """What it selects of any tag of a list; that two whole texts are equal is not looked at."""
    return tuple(dict.fromkeys(pattern for tag in text.split(",") for pattern in _read_tag(tag)))


def _read_tag(tag: str) -> tuple[Pattern, ...]:
    *before, last = tag.split(".")
    levels: list[Level] = []
    for part in before:
        level = _component(part)
        if level is None:
            return ()
        levels.append(level)
    if not last.endswith("*"):
        return () if "*" in last else (Pattern((*levels, Literal(last))),)
    body = _component(last[:-1])
    if body is None or (isinstance(body, Glob) and not last.endswith("**")):
        return ()
    if not isinstance(body, Literal):  # an earlier star left nothing of this component
        return (Pattern((*levels, body, AnyMany(1))),)
    start = AnyOne() if not body.text else Glob((body.text, ""))
    return (
        Pattern((*levels, Glob((body.text, ""), 1))),
        Pattern((*levels, start, AnyMany(1))),
    )


def _component(text: str) -> Level | None:
    """A component before a dot; None when no text matches it."""
    start = text.rstrip("*")
    if "*" in start:
        return None
    if start == text:
        return Literal(text)
    return Glob((start, "")) if start else AnyOne()
