"""Tag lists in routes: the copies of a message that a route makes for its tags.

A YAMI4 message is one message with a list of tags. A route selects tags one by one; its `TagRule`
says how many copies the selected tags make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from gateway.dialects.base import Dialect, parse_subject, read_tags
from gateway.dialects.names import canonical_levels
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import MISSING_TAG
from gateway.model.subject import Subject
from gateway.routing.source_pattern import SourcePattern, named
from gateway.routing.template_functions import Levels

TakesLevels = Callable[[Levels], bool]


class TagMode(Enum):
    """The copies that a route makes for the tags it selects."""

    EACH = "each"  # one copy for each tag
    FIRST = "first"  # one copy, named by the first or preferred tag
    COMBINE = "combine"  # one copy, with captures from several tags
    LIST = "list"  # one copy with all tags, for a target with tag lists


@dataclass(frozen=True, slots=True)
class TagRule:
    """How a route treats tag lists.

    `prefer` orders the choice of `FIRST`. Each pattern in `require_tags` must find a tag
    (`COMBINE`). The tags without a copy go into the property `unused_tags_property`, unless it is
    empty.
    """

    mode: TagMode = TagMode.EACH
    prefer: tuple[SourcePattern, ...] = ()
    require_tags: tuple[SourcePattern, ...] = ()
    unused_tags_property: str = ""


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag: its text in the source system and its subject in the canonical form."""

    text: str
    subject: Subject


@dataclass(frozen=True, slots=True)
class TagSelection:
    """The content of one copy: its tag, the captures, and the unused tags."""

    tag: Tag
    captures: Mapping[str, Levels]
    unused_tags: tuple[str, ...]


def parse_tags(text: str, dialect: Dialect) -> tuple[Tag, ...]:
    """Split a tag list into its distinct tags, in order; other dialects have one name.

    Raises:
        SubjectError: a tag is illegal, or never leaves its system.
    """
    if not dialect.tag_lists or "," not in text:
        return (Tag(text, parse_subject(text, dialect)),)
    unique = dict(zip(text.split(","), read_tags(text, dialect), strict=True))
    return tuple(
        Tag(tag, Subject(canonical_levels(levels, text, dialect))) for tag, levels in unique.items()
    )


def select_tags(
    tags: Sequence[Tag], rule: TagRule, source: SourcePattern, takes: TakesLevels
) -> tuple[TagSelection, ...]:
    """Return the copies that one route makes of a message with these tags.

    Raises:
        TranslationError: no tag matches a pattern of `rule.require_tags`.
    """
    taken = [tag for tag in tags if takes(tag.subject.levels)]
    if not taken:
        return ()
    if rule.mode in {TagMode.EACH, TagMode.LIST}:
        left = [tag for tag in tags if tag not in taken]
        return tuple(_selection(tag, source.capture(tag.subject.levels), left) for tag in taken)
    preferred = (tag for each in rule.prefer for tag in taken if each.selects(tag.subject.levels))
    chosen = next(preferred, taken[0])
    captures = source.capture(chosen.subject.levels)
    used = [chosen]
    for pattern in rule.require_tags if rule.mode is TagMode.COMBINE else ():
        other = _required_tag(tags, pattern)
        captures = named(pattern.capture(other.subject.levels)) | captures
        used.append(other)
    return (_selection(chosen, captures, [tag for tag in tags if tag not in used]),)


def join_tags(names: Iterable[str]) -> str:
    """Join names to a tag list, each once."""
    return ",".join(dict.fromkeys(names))


def _selection(tag: Tag, captures: Mapping[str, Levels], unused: Sequence[Tag]) -> TagSelection:
    return TagSelection(tag, captures, tuple(each.text for each in unused))


def _required_tag(tags: Sequence[Tag], pattern: SourcePattern) -> Tag:
    for tag in tags:
        if pattern.selects(tag.subject.levels):
            return tag
    listed = ",".join(tag.text for tag in tags)
    raise TranslationError("tags", listed, MISSING_TAG, f"no tag matches {pattern.text!r}")
