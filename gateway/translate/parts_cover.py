"""Covers in a target with topics and keys: a pattern of names, divided at each possible boundary.

A wildcard of another system may stand for the boundary. So a pattern has a division for each place
where the boundary may be: each is a pattern of topics and a pattern of their keys. A subscription
to topics without a pattern of keys selects every message of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from gateway.dialects.dialect import Dialect
from gateway.dialects.parts import BOUNDARY
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import EMPTY_NAME, MISPLACED_BOUNDARY
from gateway.model.matching import admits
from gateway.model.pattern import AnyMany, Level, Literal, Pattern

Levels: TypeAlias = tuple[Level, ...]
NO_KEY = "has no key"
NO_TOPIC = (Literal(""),)  # one empty level alone


def divisions(pattern: Pattern, target: Dialect) -> Iterator[tuple[Levels, Levels | None]]:
    """Yield the levels of the topic and of the key, None for names without one.

    Raises:
        TranslationError: no name with a topic and a key matches the pattern.
    """
    levels = pattern.levels
    fixed = [at for at, level in enumerate(levels) if level == Literal(BOUNDARY)]
    if fixed:
        (at, *more) = fixed
        if levels[:at] == NO_TOPIC:
            raise TranslationError(target.name, BOUNDARY, EMPTY_NAME, "the topic is empty")
        if more or not at:
            reason = f"a level {BOUNDARY!r} stands between topic and key, and nowhere else"
            raise TranslationError(target.name, BOUNDARY, MISPLACED_BOUNDARY, reason)
        yield levels[:at], levels[at + 1 :]
        return
    yield levels, None
    for at, level in enumerate(levels):
        if isinstance(level, AnyMany):
            if BOUNDARY not in pattern.exclusions.whole_levels:
                yield (*levels[:at], AnyMany(0)), (AnyMany(0), *levels[at + 1 :])
        elif levels[:at] not in {(), NO_TOPIC} and admits(
            level, BOUNDARY, pattern.exclusions, first=False
        ):
            yield levels[:at], levels[at + 1 :]
