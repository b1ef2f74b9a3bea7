"""Subscriptions of a system as patterns over canonical levels."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.dialects.dialect import Dialect
from gateway.dialects.globs import convert_glob
from gateway.dialects.names import canonical_levels
from gateway.dialects.parts import divided
from gateway.model.pattern import AnyMany, Glob, Level, Literal, Pattern, WildcardExclusions


def canonical_patterns(pattern: Pattern, dialect: Dialect) -> Iterator[tuple[Pattern, bool]]:
    """Convert `pattern` from the spelling of `dialect` to the canonical form.

    Each pattern comes with whether it is exact; an inexact one selects more. A literal behind a
    rest wildcard may be the first level of a name or a later one, and a first level may decode
    differently. In this case there are two patterns.
    """
    if dialect.key is not None:
        yield from _canonical_parts(pattern, dialect)
        return
    levels = pattern.levels
    fixed = [at for at, level in enumerate(levels) if not isinstance(level, AnyMany)]
    start = fixed[0] if fixed else len(levels) - 1
    if start and all(level == AnyMany(0) for level in levels[:start]):
        behind = levels[start]
        text = behind.text if isinstance(behind, Literal) else None
        if text is not None and _canonical(text, dialect) != _canonical_first(text, dialect):
            yield from canonical_patterns(Pattern(levels[start:], pattern.exclusions), dialect)
            levels = (AnyMany(1), *levels[start:])
    yield _canonical_pattern(levels, pattern.exclusions, dialect)


def _canonical_parts(pattern: Pattern, dialect: Dialect) -> Iterator[tuple[Pattern, bool]]:
    """Convert a topic and its key.

    The one level of a key may decode differently when more follow: then there are two patterns.
    """
    levels = pattern.levels
    variants = [levels]
    if divided(levels)[2][1:] == (AnyMany(0),):
        *before, level, _ = levels
        short, long = (*before, level), (*before, level, AnyMany(1))
        if _decoded_parts(short, dialect) != _decoded_parts(long, dialect)[:-1]:
            variants = [short, long]
        if level == Literal(""):  # alone, it is written as the token of an empty level
            variants = [long]
    for each in variants:
        found = _decoded_parts(each, dialect)
        yield Pattern(found, canonical_exclusions(pattern.exclusions, dialect)), True


def _decoded_parts(levels: tuple[Level, ...], dialect: Dialect) -> tuple[Level, ...]:
    texts = [level.text if isinstance(level, Literal) else "x" for level in levels]
    decoded = dialect.codec.decode(texts)  # each at its place
    pairs = zip(levels, decoded, strict=True)
    return tuple(Literal(text) if isinstance(level, Literal) else level for level, text in pairs)


def _canonical_pattern(
    levels: tuple[Level, ...], exclusions: WildcardExclusions, dialect: Dialect
) -> tuple[Pattern, bool]:
    texts = list({level.text for level in levels if isinstance(level, Literal)})
    decoded = map(Literal, dialect.codec.decode(["", *texts])[1:])
    literals = dict(zip(texts, decoded, strict=True))
    found: list[Level] = []
    exact = True
    for at, level in enumerate(levels):
        made = level
        if isinstance(level, Literal):
            made = literals[level.text] if at else Literal(_canonical_first(level.text, dialect))
        elif isinstance(level, Glob):
            made, same = convert_glob(level, dialect.escapes, first=at == 0, outward=False)
            exact = exact and same
        found.append(made)
    if found == [Literal(""), AnyMany(0)]:  # one empty level alone is not a name
        found[1] = AnyMany(1)
    return Pattern(tuple(found), canonical_exclusions(exclusions, dialect)), exact


def canonical_exclusions(exclusions: WildcardExclusions, dialect: Dialect) -> WildcardExclusions:
    """Convert the wildcard exclusions of `dialect` to canonical levels."""
    forbidden = {rule.character: rule for rule in dialect.forbidden_prefix_rules}
    first: list[str] = []
    for prefix in exclusions.first_level_prefixes:
        rule = forbidden.get(prefix)
        known = [prefix] if rule is None else rule.system_prefixes
        first += [_canonical_first(text, dialect) for text in known]
    whole = tuple(_canonical(text, dialect) for text in exclusions.whole_levels)
    return WildcardExclusions(tuple(first), whole)


def _canonical(text: str, dialect: Dialect) -> str:
    return dialect.codec.decode(["x", text])[1]


def _canonical_first(text: str, dialect: Dialect) -> str:
    return canonical_levels((text,), text, dialect)[0]
