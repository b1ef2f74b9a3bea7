"""Matching of tag lists and pattern lists, as the YAMI4 broker defines it.

It uses no regular expressions, so that each pattern costs one pass over a tag at most.
"""

from __future__ import annotations


def until_nul(text: bytes) -> bytes:
    """Return the part of a tag list or pattern list before its first NUL, where it ends."""
    return text.partition(b"\0")[0]


def matches_tag(parts: tuple[bytes, ...], tag: bytes) -> bool:
    """Return whether a pattern, split at its stars into `parts`, matches a tag.

    A star matches everything up to the next dot, without backtracking. A star that ends the
    pattern matches the rest of the tag, at least one byte.
    """
    last = len(parts) - 1
    position = 0
    for number, part in enumerate(parts):
        if not tag.startswith(part, position):
            return False
        position += len(part)
        if number == last:
            break
        if number == last - 1 and not parts[last]:
            return position < len(tag)
        dot = tag.find(b".", position)
        position = dot if dot >= 0 else len(tag)
    return position == len(tag)


class PatternList:
    """The patterns of a subscription, split into their parts."""

    def __init__(self, text: bytes) -> None:
        self.text, items = text, text.split(b",")
        self.plain = frozenset(item for item in items if b"*" not in item)
        self.starred = dict.fromkeys(tuple(item.split(b"*")) for item in items if b"*" in item)

    def matches(self, tag_list: bytes) -> bool:
        """Return whether any tag matches any pattern, or the whole texts are equal."""
        if tag_list == self.text:
            return True
        tags = tag_list.split(b",")
        return not self.plain.isdisjoint(tags) or any(
            matches_tag(parts, tag) for parts in self.starred for tag in tags
        )
