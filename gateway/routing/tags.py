"""Tag lists in routes: which tags of a message make which copies; names come from templates.

A YAMI4 message has a list of tags and is one message. A route looks at each tag by itself; its
`TagRule` says what the tags it takes become.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from gateway.dialects.base import Dialect, read_tags
from gateway.dialects.names import unescape
from gateway.errors import TranslationError
from gateway.model.subject import Subject
from gateway.routing.captures import SourcePattern
from gateway.routing.functions import Levels

Takes = Callable[[Levels], bool]


class TagMode(Enum):
    """What becomes of the tags that a route takes."""

    EACH = "each"  # a copy for each of them
    FIRST = "first"  # one copy, under the first or preferred one
    COMBINE = "combine"  # one copy, with captures from several of them
    LIST = "list"  # one copy under all of them, for a target with tag lists


@dataclass(frozen=True, slots=True)
class TagRule:
    """`prefer` orders the choice of `FIRST`; every pattern in `along` must find a tag (`COMBINE`).

    The tags of the message that made no name go into the property `others`, unless it is empty.
    """

    mode: TagMode = TagMode.EACH
    prefer: tuple[SourcePattern, ...] = ()
    along: tuple[SourcePattern, ...] = ()
    others: str = ""


@dataclass(frozen=True, slots=True)
class Tag:
    """`text` as the source spells it, `subject` as all systems have it."""

    text: str
    subject: Subject


@dataclass(frozen=True, slots=True)
class Pick:
    """What one copy is made from: its tag, the captures, and the tags that are left over."""

    tag: Tag
    captures: Mapping[str, Levels]
    others: tuple[str, ...]

    def property_of(self, rule: TagRule) -> dict[str, str]:
        """The property for the tags left over, if the rule wants one and there are any."""
        return {rule.others: ",".join(self.others)} if rule.others and self.others else {}


def parse_tags(text: str, dialect: Dialect) -> tuple[Tag, ...]:
    """The different tags of a tag list, in order; elsewhere the one name.

    Raises:
        SubjectError: a tag is illegal, or never leaves its system.
    """
    if not dialect.tag_lists or "," not in text:
        read = read_tags(text, dialect)
        return (Tag(text, Subject(unescape(read[0], text, dialect))),)
    found = zip(text.split(","), read_tags(text, dialect), strict=True)
    unique = dict(found)
    return tuple(
        Tag(tag, Subject(unescape(levels, text, dialect))) for tag, levels in unique.items()
    )


def spread(
    tags: Sequence[Tag], rule: TagRule, source: SourcePattern, takes: Takes
) -> tuple[Pick, ...]:
    """What one route makes of a message with these tags; empty when it takes none of them.

    Raises:
        TranslationError: no tag is there for a pattern of `rule.along`.
    """
    taken = [tag for tag in tags if takes(tag.subject.levels)]
    if not taken:
        return ()
    if rule.mode in {TagMode.EACH, TagMode.LIST}:
        left = [tag for tag in tags if tag not in taken]
        return tuple(_pick(tag, source.capture(tag.subject.levels), left) for tag in taken)
    chosen = _preferred(taken, rule.prefer)
    captures = source.capture(chosen.subject.levels)
    used = [chosen]
    for pattern in rule.along if rule.mode is TagMode.COMBINE else ():
        other = _companion(tags, pattern)
        captures = _named(pattern, other) | captures
        used.append(other)
    return (_pick(chosen, captures, [tag for tag in tags if tag not in used]),)


def tag_list(names: Iterable[str]) -> str:
    """Several names of one target as its tag list, each once."""
    return ",".join(dict.fromkeys(names))


def _pick(tag: Tag, captures: Mapping[str, Levels], others: Sequence[Tag]) -> Pick:
    return Pick(tag, captures, tuple(other.text for other in others))


def _preferred(taken: Sequence[Tag], prefer: Sequence[SourcePattern]) -> Tag:
    for pattern in prefer:
        for tag in taken:
            if pattern.selects(tag.subject.levels):
                return tag
    return taken[0]


def _companion(tags: Sequence[Tag], pattern: SourcePattern) -> Tag:
    for tag in tags:
        if pattern.selects(tag.subject.levels):
            return tag
    listed = ",".join(tag.text for tag in tags)
    raise TranslationError("tags", listed, "missing-tag", f"no tag matches {pattern.text!r}")


def _named(pattern: SourcePattern, tag: Tag) -> dict[str, Levels]:
    """Numbers belong to the route's own pattern."""
    found = pattern.capture(tag.subject.levels)
    return {name: levels for name, levels in found.items() if not name.isdigit()}
