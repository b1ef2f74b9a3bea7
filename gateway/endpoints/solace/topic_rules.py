"""Rules for topics, patterns and queue names that the vendor's library does not check.

The library would truncate such a name, or stop sending after it. The dialect checks all other
rules before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from gateway.model.dead_letter_rule import (
    EMPTY,
    NOT_UTF_8,
    NUL,
    TOPIC_BYTES,
    TOPIC_LEVELS,
    DeadLetterRule,
)
from gateway.model.outcome import Settlement, rejected

MAX_TOPIC: Final = 250  # bytes of UTF-8; the library counts characters
MAX_LEVELS: Final = 128
MAX_QUEUE: Final = 200
_FORBIDDEN_IN_QUEUES: Final = "'<>*?&;"
_SHARED: Final = "#share/"
_INBOX_LEVEL: Final = "#P2P"  # first level of the names of single clients and queues


@lru_cache(maxsize=65_536)
def refuse_topic(topic: str) -> Settlement | None:
    """Return the refusal of a topic to publish to, or None; wildcard characters are allowed."""
    found = find_topic_error(topic)
    return rejected(found[0], f"solace: topic {topic[:300]!r}: {found[1]}") if found else None


def find_topic_error(topic: str) -> tuple[DeadLetterRule, str] | None:
    """Return the rule that a topic or pattern breaks and the reason, or None."""
    if not topic:
        return EMPTY, "is empty"
    if "\0" in topic:
        return NUL, "the library would cut it at its NUL"
    try:
        size = len(topic.encode())
    except UnicodeEncodeError:
        return NOT_UTF_8, "cannot be written as UTF-8"
    if size > MAX_TOPIC:
        return TOPIC_BYTES, f"is {size} bytes, limit {MAX_TOPIC}"
    if (levels := topic.count("/") + 1) > MAX_LEVELS:
        return TOPIC_LEVELS, f"has {levels} levels, limit {MAX_LEVELS}"
    return None


def find_pattern_error(pattern: str) -> tuple[str, str] | None:
    """As `find_topic_error`, for a subscription, which may begin with `#share/group/`."""
    if found := find_topic_error(pattern):
        return found
    if pattern.startswith(_SHARED):
        group, _, pattern = pattern.removeprefix(_SHARED).partition("/")
        if not group:
            return "share-group", "names no group"
    levels = pattern.split("/")
    if not all(levels):
        return "empty-level", "has an empty level"
    if any("*" in level[:-1] for level in levels):
        return "wildcard", "`*` stands alone or at the end of a level"
    if levels[0] == _INBOX_LEVEL:
        return "inbox", "belongs to one client or queue"
    return None


def find_queue_error(name: str) -> tuple[str, str] | None:
    """As `find_topic_error`, for the name of a durable queue."""
    found = find_topic_error(name)
    if found and found[0] in {EMPTY, NUL, NOT_UTF_8}:
        return found
    if (size := len(name.encode())) > MAX_QUEUE:
        return "queue-bytes", f"is {size} bytes, limit {MAX_QUEUE}"
    if wrong := [char for char in name if char in _FORBIDDEN_IN_QUEUES]:
        return "queue-name", f"{wrong[0]!r} is not allowed"
    if name.startswith("#"):
        return "queue-name", "names that begin with '#' are reserved for the broker"
    return None
