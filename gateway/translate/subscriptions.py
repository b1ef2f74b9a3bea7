"""Translation of subscriptions, with the residual that the gateway has to filter."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace

from gateway.dialects.canonical import canonical_patterns
from gateway.dialects.dialect import TAG_SEPARATOR, Dialect
from gateway.dialects.names import split_levels, too_long
from gateway.dialects.patterns import level_text, matches_text, read_pattern
from gateway.dialects.tag_patterns import read_tag_pattern
from gateway.errors import SearchBudgetExceeded, TranslationError
from gateway.model.dead_letter_rule import HIDDEN
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.model.subject_search import covers
from gateway.translate.names import Renderer, Translator
from gateway.translate.pattern_cover import Cover, Levels, covers_of, omitted

Reasons = tuple[str, ...]
_START = re.compile(rf"([^*{TAG_SEPARATOR}]+)\*")  # a tag with a star at its end


def tag_covers(levels: Levels, reasons: Reasons) -> list[tuple[str, Reasons]]:
    """Return the tags that select everything `levels` select, with their surplus in words."""
    texts = [level.text for level in levels if isinstance(level, Literal)]
    if len(texts) == len(levels):  # a name: equal texts match, even if they contain stars
        name = ".".join(texts)
        exact = read_tag_pattern(name) == (Pattern(levels),)
        return [(name, reasons if exact else (*reasons, f"is {name!r}"))]
    *inner, last = levels
    plain = [_without_star(level) for level in inner]
    if plain != inner:
        reasons = (*reasons, "has a component with a star in it")
    before = "".join(f"{_tag_component(level)}." for level in plain)
    depth = f"has {len(levels)} components"
    match last:
        case AnyMany() | AnyOne():
            more = reasons if isinstance(last, AnyMany) else (*reasons, depth)
            empty = [(before, more)] if before else []
            return [(f"{before}*", more), *empty]
        case Glob(parts):
            return [(f"{before}{parts[0]}*", (*reasons, depth)), (before + parts[0], reasons)]
        case Literal(text) if "*" in text:
            start = text.partition("*")[0]
            return [(f"{before}{start}*", (*reasons, f"ends with {text!r}"))]
        case Literal(text):
            return [(before + text, reasons)]


def _without_star(level: Level) -> Level:
    if isinstance(level, Literal) and "*" in level.text:
        start = level.text.partition("*")[0]
        return Glob((start, "")) if start else AnyOne()
    return level


def _tag_component(level: Level) -> str:
    match level:
        case Literal(text):
            return text
        case Glob(parts):
            return parts[0] + "*"
        case _:
            return "*"


MAX_MINIMIZED = 512  # larger sets of subscriptions may contain redundant ones


@dataclass(frozen=True)
class Covering:
    """Subscriptions of a target that select every name that `pattern` selects at a source.

    `residual` describes the additional condition when they select other translated names too.
    `omits` describes names that the target excludes from wildcards; `delivers` refuses them.
    """

    translator: Translator
    pattern: str
    patterns: tuple[str, ...]
    residual: str
    omits: str

    @property
    def exact(self) -> bool:
        return not self.residual

    def delivers(self, name: str) -> bool:
        """Return whether a message published to `name` at the source reaches the subscriber.

        One of `patterns` has to select the translated name, and the residual has to hold: the
        source's own subscription selects the name. One tag of a tag list is sufficient.

        Raises:
            SubjectError: the name is illegal.
            TranslationError: the name has no translation, or wildcards of the target exclude it.
        """
        holds = matches_text(self.pattern, name, self.translator.source)
        reached = [self.reaches(made) for made in self.translator.names(name)]
        if holds and not any(reached):
            target = self.translator.target.name
            reason = f"wildcards of {target} do not reach it; subscribe to it in full"
            raise TranslationError(target, name, HIDDEN, reason)
        return holds

    def reaches(self, translated: str) -> bool:
        """Return whether one of `patterns` selects a name of the target; ignores the residual."""
        target = self.translator.target
        return any(matches_text(text, translated, target) for text in self.patterns)


def translate_pattern(
    text: str, source: Dialect, target: Dialect, translator: Translator | None = None
) -> Covering:
    """Return the narrowest subscriptions of `target` that cover `text`, a subscription of `source`.

    Raises:
        SubjectError: the subscription is illegal.
        TranslationError: no subscription of the target covers it.
        LimitError: the cover exceeds a limit of the target.
    """
    canonical = [
        found for own in _own_patterns(text, source) for found in canonical_patterns(own, source)
    ]
    made: list[Cover] = []
    for pattern, exact in canonical:
        more = () if exact else (f"is selected by {text!r}",)
        variants = covers_of(pattern, source, target)
        made += [replace(cover, reasons=(*cover.reasons, *more)) for cover in variants]
    found = _texts(_merged(made), target)
    reasons = list(dict.fromkeys(reason for known in found.values() for reason in known))
    return Covering(
        translator or Translator(source, Renderer(target)),
        text,
        _minimal(tuple(found), target),
        _residual(text, reasons, source, single=len(canonical) == 1),
        next(filter(None, (omitted(pattern, source, target) for pattern, _ in canonical)), ""),
    )


def pattern_texts(pattern: Pattern, dialect: Dialect) -> tuple[str, ...]:
    """Return the fewest subscriptions of `dialect` that cover a pattern of its names.

    Raises:
        TranslationError: none covers it.
        LimitError: the cover exceeds a limit.
    """
    return _minimal(
        tuple(_texts(_merged([*covers_of(pattern, dialect, dialect)]), dialect)), dialect
    )


def _residual(text: str, reasons: list[str], source: Dialect, *, single: bool) -> str:
    if not reasons or single:
        return " and ".join(reasons)
    if source.tag_lists and (start := _START.fullmatch(text)):
        return f"begins with {start[1]!r} and goes on"
    return f"{source.name} {text!r} selects it"


def _own_patterns(text: str, source: Dialect) -> tuple[Pattern, ...]:
    """Return the patterns of `text` in the spelling of `source`.

    A tag list that matches only an equal list also gets the pattern of its first tag.
    """
    patterns = read_pattern(text, source)
    if not source.tag_lists or TAG_SEPARATOR not in text:
        return patterns
    tags = [tag.split(".") for tag in text.split(TAG_SEPARATOR)]
    if any(matches(pattern, tag) for pattern in patterns for tag in tags):
        return patterns
    return (*patterns, Pattern(tuple(map(Literal, tags[0]))))


def _merged(made: list[Cover]) -> dict[Levels, tuple[str, ...]]:
    """Return the reasons by levels; two covers that together are one become one (`a.>`)."""
    merged: dict[Levels, tuple[str, ...]] = {}
    ends = dict.fromkeys(cover.levels for cover in made)
    for cover in made:
        levels, shorter = cover.levels, cover.shorter
        more = (shorter,) if shorter and levels[:-1] not in ends else ()
        merged[levels] = (*merged.get(levels, ()), *cover.reasons, *more)
    for levels in ends:
        if levels[-1] == AnyOne() and (longer := (*levels, AnyMany(1))) in merged:
            merged[(*levels[:-1], AnyMany(1))] = (*merged.pop(levels), *merged.pop(longer))
    everything = merged.pop((AnyOne(), AnyMany(0)), None)
    if everything is not None:
        merged[AnyMany(0),] = everything
    return merged


def _texts(made: dict[Levels, tuple[str, ...]], target: Dialect) -> dict[str, tuple[str, ...]]:
    """Return the subscriptions in the spelling of the target, with their surplus in words."""
    found: dict[str, tuple[str, ...]] = {}
    for levels, reasons in made.items():
        pairs = (
            tag_covers(levels, reasons) if target.tag_lists else [(_text(levels, target), reasons)]
        )
        for text, surplus in pairs:
            if error := too_long(text, split_levels(text, target), target, made=False):
                raise error
            found[text] = (*found.get(text, ()), *surplus)
    return found


def _text(levels: Levels, target: Dialect) -> str:
    return target.text_of([level_text(level, target, str) for level in levels])


def _minimal(texts: tuple[str, ...], target: Dialect) -> tuple[str, ...]:
    """Return `texts` without those that the others cover."""
    if not 1 < len(texts) <= MAX_MINIMIZED:
        return texts
    kept = {text: read_pattern(text, target) for text in texts}
    for text in texts:
        others = [pattern for other in kept if other != text for pattern in kept[other]]
        with suppress(SearchBudgetExceeded):  # undecided: it stays
            if covers(others, kept[text]):
                del kept[text]
    return tuple(kept)
