"""The subscriptions of a target that together select what one pattern of the middle does, or more.

They are the narrowest the target has, level by level; each surplus is a reason in words. Nothing
narrower is ever made: what cannot be covered is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.dialects.canonical import meant_shy
from gateway.dialects.dialect import Dialect, Star
from gateway.dialects.globs import escape_glob
from gateway.dialects.names import refuse_own
from gateway.errors import TranslationError
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern

Levels = tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Cover:
    """Levels in the target's own spelling, and what they select too much: the residual's terms.

    `shorter` is the term for names that end before the rest wildcard, when it takes those too.
    """

    levels: Levels
    reasons: tuple[str, ...]
    shorter: str = ""


def covers_of(pattern: Pattern, source: Dialect, target: Dialect) -> Iterator[Cover]:
    """Covers of `pattern`; `source` lends its words to the reasons.

    Raises:
        TranslationError: no subscription of the target covers it.
    """
    whole = pattern.levels
    if whole == (Glob(("", ""), 1),):  # there is no name of one empty level
        whole = (AnyOne(),)
    levels, cut = _with_rest_last(_in_order(whole), source, target)
    for variant, shorter in _with_minimum(levels, source, target):
        spelled: list[Level] = []
        found = list(cut)
        for at, level in enumerate(variant):
            last = at == len(variant) - 1
            made, surplus = _spelled(level, target, first=at == 0, last=last)
            spelled.append(made)
            if surplus:
                found.append(f"{source.part} {at + 1} {surplus}")
        _check(variant, spelled, target)
        found += _hidden(pattern, spelled, target)
        yield Cover(tuple(spelled), tuple(found), shorter)


def omitted(pattern: Pattern, source: Dialect, target: Dialect) -> str:
    """Names that the target keeps from wildcards and the source does not, in words; often none."""
    first = pattern.levels[0]
    wild = isinstance(first, AnyOne | AnyMany) or (isinstance(first, Glob) and not first.parts[0])
    hidden = set(target.shy.first) - set(pattern.shy.first) - {rule.char for rule in target.first}
    if not wild or not hidden:
        return ""
    starts = " or ".join(repr(source.codec.encode([text])[0]) for text in sorted(hidden))
    return f"names that begin with {starts}: {target.name} keeps them from wildcards"


def _in_order(levels: Levels) -> Levels:
    """The same selection without a wildcard behind a rest wildcard (`#/+/#` is `+/#`)."""
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
    """A rest wildcard with levels behind it takes them too, where it has to be last."""
    rests = [at for at, level in enumerate(levels[:-1]) if isinstance(level, AnyMany)]
    if target.any_many_anywhere or not rests:
        return levels, ()
    behind = levels[rests[0] :]
    least = sum(level.minimum if isinstance(level, AnyMany) else 1 for level in behind)
    ones: list[Level] = [AnyOne()] * (least - 1)
    words = source.separator.join(_word(level, source) for level in behind)
    reason = f"from {source.part} {rests[0] + 1} on matches {words!r}"
    return (*levels[: rests[0]], *ones, AnyMany(min(least, 1))), (reason,)


def _with_minimum(levels: Levels, source: Dialect, target: Dialect) -> Iterator[tuple[Levels, str]]:
    """Variants whose rest wildcard takes as many levels as the target's does, or one more."""
    rest, before = levels[-1], levels[:-1]
    if not isinstance(rest, AnyMany) or rest.minimum == target.any_many_minimum:
        yield levels, ""
    elif target.any_many_minimum == 1:
        if before and before != (Literal(""),):
            yield before, ""
        yield (*before, AnyMany(1)), ""
    elif before:
        yield (*before, AnyMany(0)), _not_itself(before, source)
    else:
        yield (AnyMany(0),), ""  # there is no name of no levels


def _word(level: Level, source: Dialect) -> str:
    match level:
        case Literal(text):
            return source.codec.encode(["x", text])[1]
        case Glob(parts):
            return "*".join(parts)
        case AnyOne():
            return source.any_one
        case AnyMany():
            return source.any_many


def _not_itself(before: Levels, source: Dialect) -> str:
    texts = [level.text for level in before if isinstance(level, Literal)]
    if len(texts) < len(before):
        return f"has more than {len(before)} {source.part}s"
    name = source.leading + source.separator.join(source.codec.encode(texts))
    return f"not {name!r} itself"


def _spelled(level: Level, target: Dialect, *, first: bool, last: bool) -> tuple[Level, str]:
    """The narrowest level of a subscription of the target, and what it takes too much."""
    match level:
        case Literal(text):
            place = [text] if first else ["x", text]
            return _literal(target.codec.encode(place)[-1], text, target, last=last)
        case Glob():
            return _glob(level, target, first=first)
        case AnyMany():
            return AnyMany(target.any_many_minimum), ""
        case AnyOne():
            return level, ""


def _literal(text: str, meant: str, target: Dialect, *, last: bool) -> tuple[Level, str]:
    reason = f"is {meant!r}"
    if not text and not target.empty_in_patterns:
        return AnyOne(), reason
    if target.star is Star.PREFIX and "*" in text:  # plain in a name, a wildcard here
        return _prefix(text.partition("*")[0]), reason
    if target.star is Star.PREFIX and last and text == target.any_many:
        return AnyOne(), reason
    return Literal(text), ""


def _glob(glob: Glob, target: Dialect, *, first: bool) -> tuple[Level, str]:
    reason = described(glob)
    if target.star in {Star.ALONE, Star.PLAIN}:
        return AnyOne(), reason
    made, exact = escape_glob(glob, target.codec, first=first)
    if isinstance(made, AnyOne):
        return made, "" if exact else reason
    exact = exact and made.minimum == 0
    if target.star is not Star.INNER:
        start = made.parts[0].partition("*")[0]
        exact = exact and made.parts == (start, "")
        return _prefix(start), "" if exact else reason
    return (AnyOne() if made.parts == ("", "") else Glob(made.parts)), "" if exact else reason


def _prefix(start: str) -> Level:
    return Glob((start, "")) if start else AnyOne()


def described(glob: Glob) -> str:
    """What a level does that `glob` matches, in words."""
    first, *middle, end = glob.parts
    if not middle and not end:
        if not first:
            return "is not empty"
        return f"begins with {first!r}" + (" and goes on" if glob.minimum else "")
    return f"matches {'*'.join(glob.parts)!r}"


def _check(variant: Sequence[Level], spelled: Sequence[Level], target: Dialect) -> None:
    """Refuse what the target's wildcards or subscriptions never reach."""
    first = spelled[0]
    texts = [level.text if isinstance(level, Literal) else "" for level in spelled]
    text = target.separator.join(texts)
    refuse_own(texts, text, target, replies=False)
    if isinstance(first, Literal) and first.text in target.unused_first:
        reason = "it means a shared subscription there"
        raise TranslationError(target.name, text, "shared-subscription", reason)
    source = variant[0]
    start = source.parts[0] if isinstance(source, Glob) else ""
    if start.startswith(target.shy.first) and isinstance(first, AnyOne) and start:
        reason = f"wildcards do not reach names that begin with {start[0]!r}"
        raise TranslationError(target.name, f"{start}*", "hidden-first", reason)


def _hidden(pattern: Pattern, spelled: Sequence[Level], target: Dialect) -> list[str]:
    """Names that the source keeps from wildcards and the target does not."""
    if not isinstance(spelled[0], AnyOne | AnyMany):
        return []
    kept = meant_shy(target.shy, target).first
    more = [text for text in pattern.shy.first if text not in kept and not text.startswith("%")]
    return [f"does not begin with {text!r}" for text in more]
