"""Subscriptions of a system as patterns over the levels of the middle."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.dialects.dialect import Dialect
from gateway.dialects.globs import unescape_glob
from gateway.dialects.names import unescape
from gateway.model.pattern import AnyMany, Glob, Level, Literal, Pattern, Shy


def meanings(pattern: Pattern, dialect: Dialect) -> Iterator[tuple[Pattern, bool]]:
    """`pattern`, as `dialect` spells it, in the middle; with each whether it is exact or more.

    A literal behind a rest wildcard may stand first in the name or not, and a first level may
    read differently: then there are two.
    """
    levels = pattern.levels
    rests = [at for at, level in enumerate(levels) if not isinstance(level, AnyMany)]
    start = rests[0] if rests else len(levels) - 1
    if start and all(level == AnyMany(0) for level in levels[:start]):
        behind = levels[start]
        if isinstance(behind, Literal) and _meant(behind.text, dialect) != _meant_first(
            behind.text, dialect
        ):
            yield from meanings(Pattern(levels[start:], pattern.shy), dialect)
            levels = (AnyMany(1), *levels[start:])
    yield _meaning(levels, pattern.shy, dialect)


def _meaning(levels: tuple[Level, ...], shy: Shy, dialect: Dialect) -> tuple[Pattern, bool]:
    texts = list({level.text for level in levels if isinstance(level, Literal)})
    decoded = map(Literal, dialect.codec.decode(["", *texts])[1:])
    meant = dict(zip(texts, decoded, strict=True))
    found: list[Level] = []
    exact = True
    for at, level in enumerate(levels):
        made = level
        if isinstance(level, Literal):
            made = meant[level.text] if at else Literal(_meant_first(level.text, dialect))
        elif isinstance(level, Glob):
            made, same = unescape_glob(level, dialect.codec, first=at == 0)
            exact = exact and same
        found.append(made)
    if found == [Literal(""), AnyMany(0)]:  # an empty name is none
        found[1] = AnyMany(1)
    return Pattern(tuple(found), meant_shy(shy, dialect)), exact


def meant_shy(shy: Shy, dialect: Dialect) -> Shy:
    """What the wildcards of `dialect` shy from, in the levels of the middle."""
    forbidden = {rule.char: rule for rule in dialect.forbidding}
    first: list[str] = []
    for prefix in shy.first:
        rule = forbidden.get(prefix)
        known = [prefix] if rule is None else rule.own
        first += [_meant_first(text, dialect) for text in known]
    return Shy(tuple(first), tuple(_meant(text, dialect) for text in shy.anywhere))


def _meant(text: str, dialect: Dialect) -> str:
    return dialect.codec.decode(["x", text])[1]


def _meant_first(text: str, dialect: Dialect) -> str:
    return unescape((text,), text, dialect)[0]
