"""What the vendor's library must never see; it lets it pass, cut or lose everything after it.

The rules of the dialect are checked before; these are the ones whose breach does damage here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from gateway.model.outcome import Settlement, rejected

MAX_TOPIC: Final = 250  # bytes of UTF-8; the library counts characters
MAX_LEVELS: Final = 128
MAX_QUEUE: Final = 200
_NOT_IN_QUEUES: Final = "'<>*?&;"
_SHARED: Final = "#share/"
_INBOXES: Final = "#P2P"  # the first level of names that clients and queues have to themselves
_NOT_OURS: Final = ("inbox", "belongs to one client or queue")


@lru_cache(maxsize=65_536)
def refuse_topic(topic: str) -> Settlement | None:
    """Why nothing can be published to `topic`, or None; a wildcard character is a plain one."""
    rule, reason = find_fault(topic)
    if topic.partition("/")[0] == _INBOXES:
        rule, reason = _NOT_OURS
    return rejected(rule, f"solace: topic {topic[:300]!r}: {reason}") if rule else None


def find_fault(topic: str) -> tuple[str, str]:
    """The rule a topic or a pattern breaks and what is wrong; two empty texts when it is fine."""
    if not topic:
        return "empty", "is empty"
    if "\0" in topic:
        return "nul", "the library would cut it at its NUL"
    try:
        size = len(topic.encode())
    except UnicodeEncodeError:
        return "not-utf-8", "cannot be written as UTF-8"
    if size > MAX_TOPIC:
        return "topic-bytes", f"is {size} bytes, limit {MAX_TOPIC}"
    if (levels := topic.count("/") + 1) > MAX_LEVELS:
        return "topic-levels", f"has {levels} levels, limit {MAX_LEVELS}"
    return "", ""


def find_pattern_fault(pattern: str) -> tuple[str, str]:
    """As `find_fault`, for what a source subscribes to; `#share/group/` may stand in front."""
    rule, reason = find_fault(pattern)
    if rule:
        return rule, reason
    if pattern.startswith(_SHARED):
        group, _, pattern = pattern.removeprefix(_SHARED).partition("/")
        if not group:
            return "share-group", "names no group"
    levels = pattern.split("/")
    if not all(levels):
        return "empty-level", "has an empty level"
    if any("*" in level[:-1] for level in levels):
        return "wildcard", "`*` stands alone or at the end of a level"
    if levels[0] == _INBOXES:
        return _NOT_OURS
    return "", ""


def find_queue_fault(name: str) -> tuple[str, str]:
    """As `find_fault`, for the name of a durable queue."""
    rule, reason = find_fault(name)
    if rule in {"empty", "nul", "not-utf-8"}:
        return rule, reason
    if (size := len(name.encode())) > MAX_QUEUE:
        return "queue-bytes", f"is {size} bytes, limit {MAX_QUEUE}"
    if wrong := [char for char in name if char in _NOT_IN_QUEUES]:
        return "queue-name", f"{wrong[0]!r} is not allowed"
    if name.startswith("#"):
        return "queue-name", "names that begin with '#' belong to the broker"
    return "", ""
