"""Subscriptions: parsing, rendering and matching in the spelling of one system."""

from __future__ import annotations

from collections.abc import Callable

from gateway.dialects.canonical import canonical_patterns
from gateway.dialects.dialect import Dialect, WildcardPlacement
from gateway.dialects.names import (
    check_first_character,
    check_joined,
    check_limits,
    empty_level_error,
    level_offset,
    read_parts,
    read_tags,
    split_levels,
)
from gateway.dialects.parts import BOUNDARY
from gateway.dialects.tag_patterns import read_any_tag, read_tag_pattern
from gateway.errors import SubjectError, TranslationError
from gateway.model.dead_letter_rule import NO_SUCH_PATTERN
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern


def read_pattern(text: str, dialect: Dialect) -> tuple[Pattern, ...]:
    """Parse a subscription of `dialect` into patterns in its own spelling; any of them may match.

    Raises:
        SubjectError: the text is not a legal subscription.
    """
    if dialect.tag_lists:
        split_levels(text, dialect)
        _check_characters(text, dialect)
        return read_tag_pattern(text)
    if dialect.key is not None:
        return _read_parts(text, dialect)
    shared = len(shared_prefix_of(text, dialect))
    text_levels = split_levels(text[shared:], dialect)
    check_limits(text, text_levels, dialect)
    _check_levels(text_levels, text, dialect)
    parsed = {part: _read_level(part, dialect, last=False) for part in set(text_levels[:-1])}
    levels = [parsed[part] for part in text_levels[:-1]]
    levels.append(_read_level(text_levels[-1], dialect, last=True))
    found = tuple(level for level in levels if not isinstance(level, str))
    if len(found) == len(levels):
        if dialect.joined:  # a wildcard stands for a level that is legal in every system
            wildcards = (dialect.any_one, dialect.any_many)
            example = ["x" if part in wildcards else part for part in text_levels]
            check_joined(example, text, dialect)
        return (Pattern(found, dialect.exclusions),)
    at, key = next((at, level) for at, level in enumerate(levels) if isinstance(level, str))
    rule, reason = _FAULTS[key]
    position = shared + level_offset(text_levels, at, dialect)
    raise SubjectError(dialect.name, text, position, rule, f"{text_levels[at]!r} {reason}")


def _read_parts(text: str, dialect: Dialect) -> tuple[Pattern, ...]:
    """Return the patterns of a topic and a key; without a key, any message of these topics."""

    def read(part: str, rules: Dialect) -> tuple[Level, ...]:
        (pattern,) = read_pattern(part, rules)
        return pattern.levels

    boundary: Level = Literal(BOUNDARY)
    levels = read_parts(text, dialect, read, boundary)
    found = Pattern(levels, dialect.exclusions)
    if BOUNDARY in text:
        return (found,)
    return found, Pattern((*levels, boundary, AnyMany(0)), dialect.exclusions)


def shared_prefix_of(text: str, dialect: Dialect) -> str:
    """Return the part of a shared subscription before its filter, `$share/group/`, or "".

    Raises:
        SubjectError: the text begins like a shared subscription and has no group or no filter.
    """
    prefix, separator = dialect.shared_prefix, dialect.separator
    if not prefix or not text.startswith(prefix):
        return ""
    group, _, topic = text.removeprefix(prefix).partition(separator)
    if not group or not topic or set(group) & {*dialect.any_one, *dialect.any_many}:
        reason = f"a shared subscription is {prefix}group{separator}filter"
        raise SubjectError(dialect.name, text, 0, "shared-subscription", reason)
    return f"{prefix}{group}{separator}"


def parse_pattern(text: str, dialect: Dialect) -> tuple[Pattern, ...]:
    """Parse a subscription into canonical patterns, which match what `parse_subject` returns.

    The result is exact, except for a star beside half an escape token (`a%2*`): it selects more.
    """
    return tuple(
        canonical
        for pattern in read_pattern(text, dialect)
        for canonical, _ in canonical_patterns(pattern, dialect)
    )


def render_pattern(pattern: Pattern, dialect: Dialect) -> str:
    """Render the canonical `pattern` in `dialect`, exactly.

    Raises:
        TranslationError: the dialect has no such subscription, for example because its wildcards
            exclude other levels. `translate_pattern` finds the nearest subscription.
    """
    levels = pattern.levels
    texts = [level.text if isinstance(level, Literal) else "x" for level in levels]
    spelled = dialect.codec.encode(texts) if texts else []  # each at its place
    words = [
        own if isinstance(level, Literal) else level_text(level, dialect, str)
        for level, own in zip(levels, spelled, strict=True)
    ]
    text = dialect.text_of(words)
    try:
        same = parse_pattern(text, dialect) == (pattern,)
    except SubjectError as error:
        raise TranslationError(dialect.name, text, NO_SUCH_PATTERN, error.reason) from error
    if not same:
        reason = "no subscription selects exactly this"
        raise TranslationError(dialect.name, text, NO_SUCH_PATTERN, reason)
    return text


def level_text(level: Level, dialect: Dialect, literal: Callable[[str], str]) -> str:
    """Return a level of a subscription of `dialect`; `literal` spells one without a wildcard."""
    match level:
        case Literal(text):
            return literal(text)
        case Glob(parts):
            return dialect.any_one.join(parts)
        case AnyOne():
            return dialect.any_one
        case AnyMany():
            return dialect.any_many


def matches_text(pattern: str, name: str, dialect: Dialect) -> bool:
    """Return whether the subscription `pattern` receives a message published to `name`.

    In a dialect with tag lists, `name` is a tag list and one matching tag is sufficient.

    Raises:
        SubjectError: the pattern or the name is illegal.
    """
    patterns = read_pattern(pattern, dialect)
    names = read_tags(name, dialect)
    if dialect.tag_lists:
        if pattern == name:
            return True
        patterns = read_any_tag(pattern)
    return any(matches(one, levels) for levels in names for one in patterns)


def _check_levels(levels: tuple[str, ...], text: str, dialect: Dialect) -> None:
    if not dialect.empty_levels_in_patterns and "" in levels:
        raise empty_level_error(levels, text, dialect)
    _check_characters(text, dialect)
    check_first_character(levels[0], text, dialect)


def _check_characters(text: str, dialect: Dialect) -> None:
    found = dialect.find_forbidden_in_pattern(text)
    if found is not None:
        prohibition = dialect.prohibition(found[0])
        raise SubjectError(dialect.name, text, found.start(), *prohibition)


def _read_level(part: str, dialect: Dialect, *, last: bool) -> Level | str:
    """Return the level, or the key of its fault in `_FAULTS`."""
    if part == dialect.any_one:
        return AnyOne()
    if part == dialect.any_many and (last or dialect.any_many_anywhere):
        return AnyMany(dialect.any_many_minimum)
    if part == dialect.any_many and dialect.wildcard_placement is not WildcardPlacement.PREFIX:
        return "rest"
    only_alone = dialect.wildcard_placement is WildcardPlacement.ALONE
    if dialect.any_one in part or (only_alone and dialect.any_many in part):
        return _read_mixed_level(part, dialect)
    return Literal(part)


def _read_mixed_level(part: str, dialect: Dialect) -> Level | str:
    """Return a level with a wildcard character among others, or the key of its fault."""
    if dialect.wildcard_placement is WildcardPlacement.ALONE:
        return "inside"
    if dialect.wildcard_placement is WildcardPlacement.PLAIN:
        return Literal(part)
    if dialect.wildcard_placement is WildcardPlacement.PREFIX:
        return "affix" if dialect.any_one in part[:-1] else Glob((part[:-1], ""))
    first, *inner, last = part.split(dialect.any_one)
    glob = Glob((first, *filter(None, inner), last))
    return AnyOne() if glob == Glob(("", "")) else glob


_FAULTS = {
    "rest": ("wildcard-not-last", "is the rest wildcard and not last"),
    "inside": ("wildcard-in-element", "has a wildcard that does not fill it"),
    "affix": ("wildcard-in-element", "has a wildcard elsewhere than at its end"),
}
