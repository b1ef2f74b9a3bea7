"""Which subscriptions a published tag list selects: section 6 of the YAMI4 facts.

Written by hand and not as a regular expression: no pattern costs more than one pass over a tag.
"""

from __future__ import annotations

from dataclasses import dataclass, field


def until_nul(text: bytes) -> bytes:
    """Tag lists and pattern lists end at their first NUL."""
    return text.partition(b"\0")[0]


def matches_tag(parts: tuple[bytes, ...], tag: bytes) -> bool:
    """`parts` is the pattern split at its stars.

    A star takes all up to the next dot and never gives back; one that ends the pattern takes the
    rest of the tag, at least one byte.
    """
    last = len(parts) - 1
    place = 0
    for number, part in enumerate(parts):
        if not tag.startswith(part, place):
            return False
        place += len(part)
        if number == last:
            break
        if number == last - 1 and not parts[last]:
            return place < len(tag)
        dot = tag.find(b".", place)
        place = dot if dot >= 0 else len(tag)
    return place == len(tag)


@dataclass(frozen=True, slots=True)
class PatternList:
    """A subscription's patterns, split once."""

    text: bytes
    plain: frozenset[bytes] = field(init=False)
    starred: tuple[tuple[bytes, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        items = self.text.split(b",")
        starred = {tuple(item.split(b"*")): None for item in items if b"*" in item}
        object.__setattr__(self, "plain", frozenset(item for item in items if b"*" not in item))
        object.__setattr__(self, "starred", tuple(starred))

    def matches(self, tag_list: bytes) -> bool:
        """Say whether any tag matches any pattern, or the whole texts are equal."""
        if tag_list == self.text:
            return True
        tags = tag_list.split(b",")
        return not self.plain.isdisjoint(tags) or any(
            matches_tag(parts, tag) for parts in self.starred for tag in tags
        )
