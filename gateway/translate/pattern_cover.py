"""Covers: the narrowest subscriptions of a target that select everything a pattern selects.

A cover is built level by level from a canonical pattern. Each surplus that it selects is listed
as a reason in words. A pattern without a cover is refused; a cover never selects less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gateway.dialects.canonical import canonical_exclusions
from gateway.dialects.dialect import Dialect, WildcardPlacement
from gateway.dialects.globs import convert_glob
from gateway.dialects.names import refuse_reserved, too_long
from gateway.dialects.parts import BOUNDARY, divided
from gateway.dialects.patterns import level_text
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import HIDDEN_FIRST, SHARED_SUBSCRIPTION
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.translate.parts_cover import NO_KEY, Levels, divisions

__all__ = ["Cover", "Levels", "covers_of", "described", "omitted"]


@dataclass(frozen=True, slots=True)
class Cover:
    """Levels in the target's own spelling, and the terms of the residual for their surplus.

    `shorter` is the term for names that end before the rest wildcard, if it matches them too.
    """

    levels: Levels
    reasons: tuple[str, ...]
    shorter: str = ""


def covers_of(pattern: Pattern, source: Dialect, target: Dialect) -> Iterator[Cover]:
    """Yield covers of `pattern`; the reasons use the spelling and the words of `source`.

    Raises:
        TranslationError: no subscription of the target covers the pattern.
    """
    if target.key is not None:
        yield from _parts_covers(pattern, source, target, target.key)
        return
    levels = pattern.levels
    if levels == (Glob(("", ""), 1),):  # one empty level alone is not a name
        levels = (AnyOne(),)
    levels, cut = _with_rest_last(_in_order(levels), source, target)
    for variant, shorter in _with_minimum(levels, source, target):
        made = [
            _spelled(level, target, first=at == 1, last=at == len(variant))
            for at, level in enumerate(variant, start=1)
        ]
        spelled = tuple(level for level, _ in made)
        _check(variant, spelled, target)
        noun = source.level_noun
        surplus = [f"{noun} {at} {words}" for at, (_, words) in enumerate(made, start=1) if words]
        surplus += _not_excluded(pattern, spelled, target)
        if source.key is not None and _has_open_topic(pattern):
            surplus.append(f"no {noun} before the key is {BOUNDARY!r}")
        yield Cover(spelled, (*cut, *surplus), shorter)


def _parts_covers(
    pattern: Pattern, source: Dialect, target: Dialect, rules: Dialect
) -> Iterator[Cover]:
    """Yield covers for each division into a topic and a key; `rules` are those of the key."""
    for topic, key in divisions(pattern, target):
        for cover in covers_of(Pattern(topic, pattern.exclusions), source, target.topic):
            if key is None:
                _refuse_too_long(cover.levels, target)  # before there are many divisions
                more = () if isinstance(topic[-1], AnyMany) else (NO_KEY,)
                yield replace(cover, reasons=(*cover.reasons, *more))
                continue
            own = (*cover.reasons, *filter(None, [cover.shorter]))
            for below in _key_covers(key, source, rules):
                surplus = [*below.reasons, *filter(None, [below.shorter])]
                if key == (AnyMany(1),):
                    surplus.append("is not empty")
                reasons = (*own, *(f"its key {words}" for words in surplus))
                yield Cover((*cover.levels, Literal(BOUNDARY), *below.levels), reasons)


def _key_covers(key: Levels, source: Dialect, rules: Dialect) -> Iterator[Cover]:
    """Yield covers of a key; a key of one level may have another spelling than a longer one."""
    if not key:
        yield Cover((), ())
        return
    alone = replace(rules, empty_levels=False)
    first, *more = key
    text = first.text if isinstance(first, Literal) and more == [AnyMany(0)] else "x"
    if alone.spelled_later(text) != rules.spelled_later(text):
        yield from covers_of(Pattern((first,)), source, alone)
        key = (first, AnyMany(1))
    yield from covers_of(Pattern(key), source, alone if len(key) == 1 else rules)


def _has_open_topic(pattern: Pattern) -> bool:
    """Return whether the topic of a pattern has a wildcard, which ends at the boundary."""
    return any(not isinstance(level, Literal) for level in divided(pattern.levels)[0])


def _refuse_too_long(levels: Levels, target: Dialect) -> None:
    text = target.text_of([level_text(level, target, str) for level in levels])
    if error := too_long(text, target.levels_of(text), target, made=False):
        raise error


def omitted(pattern: Pattern, source: Dialect, target: Dialect) -> str:
    """Describe the names that only the target excludes from wildcards; usually empty."""
    first = pattern.levels[0]
    wild = isinstance(first, AnyOne | AnyMany) or (isinstance(first, Glob) and not first.parts[0])
    excluded = (
        set(target.exclusions.first_level_prefixes)
        - set(pattern.exclusions.first_level_prefixes)
        - {rule.character for rule in target.prefix_rules}
    )
    if not wild or not excluded:
        return ""
    starts = " or ".join(repr(source.codec.encode([text])[0]) for text in sorted(excluded))
    return f"names that begin with {starts}: {target.name} keeps them from wildcards"


def _in_order(levels: Levels) -> Levels:
    """Return equivalent levels without a wildcard behind a rest wildcard (`#/+/#` is `+/#`)."""
    found: list[Level] = []
    for level in levels:
        rest = found[-1] if found else None
        if not isinstance(rest, AnyMany) or not isinstance(level, AnyOne | AnyMany):
            found.append(level)
            continue
        ones = rest.minimum + (level.minimum if isinstance(level, AnyMany) else 1)
        found[-1:] = [*[AnyOne()] * ones, AnyMany(0)]
    return tuple(found)


def _with_rest_last(
    levels: Levels, source: Dialect, target: Dialect
) -> tuple[Levels, tuple[str, ...]]:
    """Let an inner rest wildcard take the levels behind it, if the target wants it last."""
    rests = [at for at, level in enumerate(levels[:-1]) if isinstance(level, AnyMany)]
    if target.any_many_anywhere or not rests:
        return levels, ()
    behind = levels[rests[0] :]
    minimum = sum(level.minimum if isinstance(level, AnyMany) else 1 for level in behind)
    ones: list[Level] = [AnyOne()] * (minimum - 1)
    texts = (level_text(level, source, source.spelled_later) for level in behind)
    reason = f"from {source.level_noun} {rests[0] + 1} on matches {source.text_of([*texts])!r}"
    return (*levels[: rests[0]], *ones, AnyMany(min(minimum, 1))), (reason,)


def _with_minimum(levels: Levels, source: Dialect, target: Dialect) -> Iterator[tuple[Levels, str]]:
    """Yield variants whose rest wildcard has the minimum of the target's rest wildcard."""
    rest, before = levels[-1], levels[:-1]
    if not isinstance(rest, AnyMany) or rest.minimum == target.any_many_minimum:
        yield levels, ""
    elif target.any_many_minimum == 1:
        if before and before != (Literal(""),):
            yield before, ""
        yield (*before, AnyMany(1)), ""
    elif before and target.any_many_anywhere:
        yield (*before, AnyOne(), AnyMany(0)), ""
    elif before:  # MQTT: its users know 'a/#', and not the exact 'a/+/#'
        yield (*before, AnyMany(0)), _not_itself(before, source)
    else:
        yield (AnyMany(0),), ""  # every name has a level


def _not_itself(before: Levels, source: Dialect) -> str:
    texts = [level.text for level in before if isinstance(level, Literal)]
    if len(texts) < len(before):
        return f"has more than {len(before)} {source.level_noun}s"
    name = source.text_of(source.codec.encode(texts))
    return f"not {name!r} itself"


def _spelled(level: Level, target: Dialect, *, first: bool, last: bool) -> tuple[Level, str]:
    """Return the narrowest level of a subscription of the target, and its surplus in words."""
    match level:
        case Literal(text):
            encoded = target.codec.encode([text])[0] if first else target.spelled_later(text)
            return _literal(encoded, text, target, last=last)
        case Glob():
            return _glob(level, target, first=first)
        case AnyMany():
            return AnyMany(target.any_many_minimum), ""
        case AnyOne():
            return level, ""


def _literal(text: str, canonical: str, target: Dialect, *, last: bool) -> tuple[Level, str]:
    reason = f"is {canonical!r}"
    if not text and not target.empty_levels_in_patterns:
        return AnyOne(), reason
    if target.wildcard_placement is WildcardPlacement.PREFIX:
        if target.any_one in text:  # ordinary in a name, a wildcard here
            return _prefix(text.partition(target.any_one)[0]), reason
        if last and text == target.any_many:
            return AnyOne(), reason
    if target.wildcard_placement is WildcardPlacement.PLAIN and text in {
        target.any_one,
        target.any_many,
    }:
        return AnyOne(), reason  # ordinary in a key of Kafka
    return Literal(text), ""


def _glob(glob: Glob, target: Dialect, *, first: bool) -> tuple[Level, str]:
    reason = described(glob)
    if target.wildcard_placement in {WildcardPlacement.ALONE, WildcardPlacement.PLAIN}:
        return AnyOne(), reason
    made, exact = convert_glob(glob, target.escapes, first=first, outward=True)
    if isinstance(made, AnyOne):
        return made, "" if exact else reason
    exact = exact and made.minimum == 0
    if target.wildcard_placement is not WildcardPlacement.INNER:
        start = made.parts[0].partition(target.any_one)[0]
        exact = exact and made.parts == (start, "")
        return _prefix(start), "" if exact else reason
    return (AnyOne() if made.parts == ("", "") else Glob(made.parts)), "" if exact else reason


def _prefix(start: str) -> Level:
    return Glob((start, "")) if start else AnyOne()


def described(glob: Glob) -> str:
    """Describe the levels that `glob` matches."""
    first, *middle, end = glob.parts
    if not middle and not end:
        if not first:
            return "is not empty"
        return f"begins with {first!r}" + (" and goes on" if glob.minimum else "")
    return f"matches {'*'.join(glob.parts)!r}"


def _check(variant: Sequence[Level], spelled: Sequence[Level], target: Dialect) -> None:
    """Refuse names that the target's wildcards or subscriptions never match."""
    first = spelled[0]
    texts = [level.text if isinstance(level, Literal) else "" for level in spelled]
    text = target.text_of(texts)
    refuse_reserved(texts, text, target, replies=False)
    if isinstance(first, Literal) and target.is_unsubscribable(first.text):
        reason = "it means a shared subscription there"
        raise TranslationError(target.name, text, SHARED_SUBSCRIPTION, reason)
    source = variant[0]
    start = source.parts[0] if isinstance(source, Glob) else ""
    hidden = target.exclusions.first_level_prefixes
    if start and isinstance(first, AnyOne) and start.startswith(hidden):
        reason = f"wildcards do not reach names that begin with {start[0]!r}"
        raise TranslationError(target.name, f"{start}*", HIDDEN_FIRST, reason)


def _not_excluded(pattern: Pattern, spelled: Sequence[Level], target: Dialect) -> list[str]:
    """Describe the names that only the source excludes from wildcards."""
    if not isinstance(spelled[0], AnyOne | AnyMany):
        return []
    excluded = canonical_exclusions(target.exclusions, target).first_level_prefixes
    more = [
        text
        for text in pattern.exclusions.first_level_prefixes
        if text not in excluded and not text.startswith("%")
    ]
    return [f"does not begin with {text!r}" for text in more]
