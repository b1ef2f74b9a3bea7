"""Names in two parts, a topic and a key: `TOPIC:KEY`, or `TOPIC` when the key is null.

A topic has no `:`, so the first one divides a name. Each part has levels and a spelling of its own.
As levels a name is one list, in which the level `:` is the boundary: `plant.7:a.b` is `plant`, `7`,
`:`, `a`, `b`. An empty key has no level; a key of one empty level is written `%-`. A name has one
boundary at most, and no other level is `:`. So a wildcard of a topic ends at the boundary
(`BOUNDARY_EXCLUDED`), and one of a key needs no rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from gateway.dialects.escape import CharacterSearch, LevelCodec
from gateway.model.pattern import Literal, WildcardExclusions

T = TypeVar("T")
BOUNDARY: Final = ":"
_BOUNDARIES: Final = (BOUNDARY, (BOUNDARY,), Literal(BOUNDARY))
_KEY: Final = re.compile(BOUNDARY)
BOUNDARY_EXCLUDED: Final = WildcardExclusions(whole_levels=(BOUNDARY,))


def boundary_of(levels: Sequence[object]) -> int:
    """Return the index of the boundary in a name or a pattern, or the number of its levels.

    A topic has one level at least.
    """
    return next((at for at, each in enumerate(levels) if at and each in _BOUNDARIES), len(levels))


def divided(levels: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
    """Return the levels of the topic, the boundary if there is one, and the levels of the key."""
    at = boundary_of(levels)
    return levels[:at], levels[at : at + 1], levels[at + 1 :]


def has_empty_key(name: str) -> bool:
    """Return whether a name in two parts has a key without text, which is not a null key."""
    return name.partition(BOUNDARY)[1:] == (BOUNDARY, "")


@dataclass(frozen=True, slots=True)
class PartsCodec:
    """The spelling of both parts; `one_level` is the codec of a key of one level."""

    topic: LevelCodec
    key: LevelCodec
    one_level: LevelCodec

    @property
    def rule_characters(self) -> tuple[str, ...]:
        """The first characters of a topic to which a prefix rule can apply."""
        return self.topic.rule_characters

    @property
    def may_need_decoding(self) -> CharacterSearch:
        """Search a name for a key, and a topic for whatever its codec searches."""
        return self._may_need_decoding

    def _may_need_decoding(self, text: str) -> re.Match[str] | None:
        return _KEY.search(text) or self.topic.may_need_decoding(text)

    @property
    def escaped_characters(self) -> list[str]:
        """The characters that a topic cannot have."""
        return self.topic.escaped_characters

    def encode(self, levels: Sequence[str]) -> list[str]:
        """Spell canonical levels for this system; every tuple of levels has a spelling."""
        topic, between, key = divided(levels)
        return [*self.topic.encode(topic), *between, *self._key_codec(key).encode(key)]

    def decode(self, levels: Sequence[str]) -> list[str]:
        """Return the canonical levels of a legal name of this system."""
        topic, between, key = divided(levels)
        return [*self.topic.decode(topic), *between, *self._key_codec(key).decode(key)]

    def unspellable(self, levels: Sequence[str]) -> list[str]:
        """Return the characters and texts that this system cannot spell, for people to read."""
        topic, _, key = divided(levels)
        lost = self.topic.unspellable(topic)
        lost += self._key_codec(key).unspellable(key) if key else []
        return list(dict.fromkeys(lost))

    def replaced(self, levels: Sequence[str], char: str) -> list[str]:
        """Spell levels with `char` for everything unspellable: short, and not reversible."""
        topic, between, key = divided(levels)
        made = self._key_codec(key).replaced(key, char) if key else []
        return [*self.topic.replaced(topic, char), *between, *made]

    def _key_codec(self, key: Sequence[str]) -> LevelCodec:
        return self.one_level if len(key) == 1 else self.key
