"""The subscriptions that match a topic, by the rules of SMF, on undecoded bytes.

`*` alone is any one level, `red*` a level with that beginning, a last `>` one or more levels.
No wildcard matches a level `#P2P`. Neither `*` nor `>` matches a first level that begins with `$`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

MAX_TOPIC: Final = 250  # bytes, the NUL not counted
MAX_LEVELS: Final = 128
_MAX_CACHED_TOPICS: Final = 65_536

Matches = Callable[[bytes], object]
T = TypeVar("T", bound=Hashable)

_NOT_P2P: Final = rb"(?!#P2P(?:/|\Z))"
_NOT_RESERVED: Final = rb"(?!\$)"  # topics of the broker itself
_LEVEL: Final = rb"[^/]*"


def is_pattern(text: bytes) -> bool:
    """Return whether a client may subscribe to `text`."""
    levels = text.split(b"/")
    return (
        0 < len(text) <= MAX_TOPIC
        and len(levels) <= MAX_LEVELS
        and all(level and b"*" not in level[:-1] for level in levels)
    )


def is_topic(text: bytes) -> bool:
    """Return whether a client may publish to `text`; empty levels and wildcards are allowed."""
    return 0 < len(text) <= MAX_TOPIC and text.count(b"/") < MAX_LEVELS


def compile_pattern(pattern: bytes) -> Matches | None:
    """Return a predicate on topics, or None for a pattern without a wildcard."""
    levels = pattern.split(b"/")
    if levels[-1] != b">" and not any(level.endswith(b"*") for level in levels):
        return None
    return re.compile(b"".join(_expressions(levels)), re.DOTALL).fullmatch


def _expressions(levels: list[bytes]) -> Iterator[bytes]:
    for index, level in enumerate(levels):
        if index:
            yield b"/"
        if level == b"*" or (level == b">" and index == len(levels) - 1):
            yield (b"" if index else _NOT_RESERVED) + _NOT_P2P + _LEVEL
            if level == b">":
                yield b"(?:/" + _NOT_P2P + _LEVEL + b")*"
        elif level.endswith(b"*"):
            yield _NOT_P2P + re.escape(level[:-1]) + _LEVEL
        else:
            yield re.escape(level)


class SubscriptionTable(Generic[T]):
    """Subscribers by pattern, with a cache of the subscribers of each topic.

    Mutable: owned by the broker's event loop; a change empties the cache.
    """

    def __init__(self) -> None:
        self._targets: dict[bytes, dict[T, None]] = {}
        self._wild: dict[bytes, Matches] = {}  # of the patterns with a wildcard
        self._cache: dict[bytes, tuple[T, ...]] = {}

    def add(self, pattern: bytes, target: T) -> None:
        if pattern not in self._targets and (matches := compile_pattern(pattern)) is not None:
            self._wild[pattern] = matches
        self._targets.setdefault(pattern, {})[target] = None
        self._cache.clear()

    def remove(self, pattern: bytes, target: T) -> None:
        """Remove a subscription, if there is one."""
        targets = self._targets.get(pattern, {})
        targets.pop(target, None)
        if not targets:
            self._targets.pop(pattern, None)
            self._wild.pop(pattern, None)
        self._cache.clear()

    def find(self, topic: bytes) -> tuple[T, ...]:
        """Return every subscriber of `topic` once."""
        found = self._cache.get(topic)
        if found is None:
            if len(self._cache) >= _MAX_CACHED_TOPICS:
                self._cache.clear()
            found = self._cache[topic] = tuple(self._search(topic))
        return found

    def _search(self, topic: bytes) -> dict[T, None]:
        found = dict(self._targets.get(topic, {}))  # a pattern matches its own text, too
        for pattern, matches in self._wild.items():
            if matches(topic):
                found.update(self._targets[pattern])
        return found
