"""Subscriptions: read as their system means them, spelled, and carried to the middle."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.canonical import meanings
from gateway.dialects.dialect import Dialect, Star
from gateway.dialects.names import (
    check_first,
    check_joined,
    check_read,
    empty_level,
    offset,
    read_tags,
    split,
)
from gateway.dialects.tags import read_any_tag, read_tag_pattern
from gateway.errors import SubjectError, TranslationError
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern

SHARED = "$share/"  # MQTT 5.0, 4.8.2


def read_pattern(text: str, dialect: Dialect) -> tuple[Pattern, ...]:
    """What a subscription of `dialect` selects, in its own spelling: any of the patterns.

    Raises:
        SubjectError: the text is not a legal subscription.
    """
    if dialect.tag_lists:
        split(text, dialect)
        if (nul := text.find("\0")) >= 0:
            raise SubjectError(dialect.name, text, nul, "nul", "NUL cannot stand in it")
        return read_tag_pattern(text)
    shared = len(share_of(text, dialect))
    text_levels = split(text[shared:], dialect)
    check_read(text, text_levels, dialect)
    _check_levels(text_levels, text, dialect)
    kinds = {part: _read_level(part, dialect, last=False) for part in set(text_levels[:-1])}
    levels = [kinds[part] for part in text_levels[:-1]]
    levels.append(_read_level(text_levels[-1], dialect, last=True))
    found = tuple(level for level in levels if not isinstance(level, str))
    if len(found) == len(levels):
        if dialect.also:  # a wildcard stands for a level that is legal everywhere
            wild = (dialect.any_one, dialect.any_many)
            check_joined(["x" if part in wild else part for part in text_levels], text, dialect)
        return (Pattern(found, dialect.shy),)
    raise _fault(text, shared, text_levels, levels, dialect)


def share_of(text: str, dialect: Dialect) -> str:
    """What of `text` stands before the filter and names the share (MQTT 5.0, 4.8.2), or "".

    Raises:
        SubjectError: it begins as a shared subscription and is none.
    """
    if dialect.name != "mqtt" or not text.startswith(SHARED):
        return ""
    group, slash, topic = text.removeprefix(SHARED).partition("/")
    if not group or not slash or not topic or "+" in group or "#" in group:
        reason = "a shared subscription is $share/group/filter"
        raise SubjectError(dialect.name, text, 0, "shared-subscription", reason)
    return f"{SHARED}{group}/"


def parse_pattern(text: str, dialect: Dialect) -> tuple[Pattern, ...]:
    """What a subscription selects, as patterns over the levels that `parse_subject` gives.

    Exact, but for a star beside half an escape token (`a%2*`), where it selects more.
    """
    return tuple(
        meant for pattern in read_pattern(text, dialect) for meant, _ in meanings(pattern, dialect)
    )


def render_pattern(pattern: Pattern, dialect: Dialect) -> str:
    """Spell `pattern`, levels of the middle, in `dialect`, or refuse; it never widens or narrows.

    Raises:
        TranslationError: the dialect has no such subscription; its wildcards shy from other
            levels included. `translate_pattern` finds the nearest that it has.
    """
    codec = dialect.codec
    words: list[str] = []
    for at, level in enumerate(pattern.levels):
        match level:
            case Literal(text):
                words.append(codec.encode([text])[0] if at == 0 else codec.encode(["x", text])[1])
            case AnyOne():
                words.append(dialect.any_one)
            case AnyMany():
                words.append(dialect.any_many)
            case Glob(parts):
                words.append("*".join(parts))
    text = dialect.leading + dialect.separator.join(words)
    try:
        same = parse_pattern(text, dialect) == (pattern,)
    except SubjectError as error:
        raise TranslationError(dialect.name, text, error.rule, error.reason) from error
    if not same:
        reason = "no subscription selects exactly this"
        raise TranslationError(dialect.name, text, "no-such-pattern", reason)
    return text


def matches_text(pattern: str, name: str, dialect: Dialect) -> bool:
    """Whether the subscription `pattern` receives what is published to `name`, as the system does.

    For YAMI4 `name` is a tag list and any tag may match.

    Raises:
        SubjectError: one of them is illegal.
    """
    patterns = read_pattern(pattern, dialect)
    names = read_tags(name, dialect)
    if dialect.tag_lists:
        if pattern == name:
            return True
        patterns = read_any_tag(pattern)
    return any(matches(one, levels) for levels in names for one in patterns)


def _check_levels(levels: tuple[str, ...], text: str, dialect: Dialect) -> None:
    if not dialect.empty_in_patterns and "" in levels:
        raise empty_level(levels, text, dialect)
    if "\0" in dialect.forbidden and "\0" in text:
        raise SubjectError(dialect.name, text, text.index("\0"), "nul", "NUL cannot stand in it")
    check_first(levels[0], text, dialect)


def _read_level(part: str, dialect: Dialect, *, last: bool) -> Level | str:
    """The level, or the key of its fault in `_FAULTS`."""
    star = dialect.any_one
    if part == star:
        return AnyOne()
    if part == dialect.any_many and (last or dialect.any_many_anywhere):
        return AnyMany(dialect.any_many_minimum)
    if part == dialect.any_many and dialect.star is not Star.PREFIX:
        return "rest"
    if star in part or (dialect.star is Star.ALONE and dialect.any_many in part):
        return _mixed(part, dialect)
    return Literal(part)


def _mixed(part: str, dialect: Dialect) -> Level | str:
    """A level with a wildcard character among others."""
    if dialect.star is Star.ALONE:
        return "inside"
    if dialect.star is Star.PLAIN:
        return Literal(part)
    if dialect.star is Star.PREFIX:
        return "affix" if "*" in part[:-1] else Glob((part[:-1], ""))
    first, *middle, last = part.split("*")
    glob = Glob((first, *filter(None, middle), last))
    return AnyOne() if glob == Glob(("", "")) else glob


def _fault(
    text: str,
    start: int,
    parts: tuple[str, ...],
    levels: Sequence[Level | str],
    dialect: Dialect,
) -> SubjectError:
    """What is wrong with the first level that has a fault and no meaning."""
    at, key = next((at, level) for at, level in enumerate(levels) if isinstance(level, str))
    rule, reason = _FAULTS[key]
    place = start + offset(parts, at, dialect)
    return SubjectError(dialect.name, text, place, rule, f"{parts[at]!r} {reason}")


_FAULTS = {
    "rest": ("wildcard-not-last", "is the rest wildcard and not last"),
    "inside": ("wildcard-in-element", "has a wildcard that does not fill it"),
    "affix": ("wildcard-in-element", "has a wildcard elsewhere than at its end"),
}
