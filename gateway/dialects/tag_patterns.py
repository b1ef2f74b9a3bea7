"""YAMI4 subscriptions as patterns over components.

The rule works character by character (`docs/dialects/yami4.md`). A star that ends the tag takes
one or more characters, dots included. Any other star takes all characters up to the next dot,
without backtracking. A star before a character other than a dot therefore makes a tag that
matches no other tag. Two equal texts always match.
"""

from __future__ import annotations

from gateway.dialects.dialect import TAG_SEPARATOR
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern


def read_tag_pattern(text: str) -> tuple[Pattern, ...]:
    """Return the patterns of a subscription's tag list for a message with one tag."""
    found = read_any_tag(text)
    if TAG_SEPARATOR not in text:
        levels = text.split(".")
        if not any(matches(pattern, levels) for pattern in found):
            return (*found, Pattern(tuple(map(Literal, levels))))
    return found


def read_any_tag(text: str) -> tuple[Pattern, ...]:
    """Return the patterns of a subscription's tags, without the rule that equal texts match."""
    tags = text.split(TAG_SEPARATOR)
    return tuple(dict.fromkeys(pattern for tag in tags for pattern in _read_tag(tag)))


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
    if not isinstance(body, Literal):  # an earlier star took the rest of this component
        return (Pattern((*levels, body, AnyMany(1))),)
    start = AnyOne() if not body.text else Glob((body.text, ""))
    return (
        Pattern((*levels, Glob((body.text, ""), 1))),
        Pattern((*levels, start, AnyMany(1))),
    )


def _component(text: str) -> Level | None:
    """Return the level of a component before a dot; None when no text matches it."""
    start = text.rstrip("*")
    if "*" in start:
        return None
    if start == text:
        return Literal(text)
    return Glob((start, "")) if start else AnyOne()
