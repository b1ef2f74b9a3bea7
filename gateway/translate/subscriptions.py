"""Subscriptions of one system as subscriptions of another, with what is left to filter."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from gateway.dialects.canonical import meanings
from gateway.dialects.dialect import Dialect
from gateway.dialects.limits import over_limit
from gateway.dialects.names import split
from gateway.dialects.patterns import matches_text, read_pattern
from gateway.errors import LimitError, TranslationError
from gateway.model.language import covers
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.translate.cover import Cover, Levels, covers_of, omitted
from gateway.translate.names import Translator
from gateway.translate.tagcover import tag_covers

COMPARED = 512  # covering sets up to this size are made minimal


@dataclass(frozen=True)
class Covering:
    """Subscriptions of `target` that select every name a subscription of `source` selects.

    `exact` when they select no other translated name; else `residual` says what holds besides.
    `omits` tells of names that the target keeps from wildcards: those are refused, see `delivers`.
    """

    source: Dialect
    target: Dialect
    pattern: str
    patterns: tuple[str, ...]
    residual: str
    omits: str
    translator: Translator = field(repr=False, compare=False)

    @property
    def exact(self) -> bool:
        return not self.residual

    def delivers(self, name: str) -> bool:
        """Whether a message published to `name` at the source reaches the subscriber.

        One of `patterns` has to select its translation and the residual has to hold: that the
        source's own subscription selects the name. Any tag of a tag list will do.

        Raises:
            SubjectError, TranslationError: the name is illegal, has no translation, or is one
                that the target keeps from wildcards.
        """
        holds = matches_text(self.pattern, name, self.source)
        reached = [self.reaches(made) for made in self.translator.names(name)]
        if holds and not any(reached):
            reason = f"wildcards of {self.target.name} do not reach it; subscribe to it in full"
            raise TranslationError(self.target.name, name, "hidden", reason)
        return holds

    def reaches(self, translated: str) -> bool:
        """Whether a name of the target comes through its subscriptions, before the residual."""
        return any(matches_text(text, translated, self.target) for text in self.patterns)


def translate_pattern(
    text: str, source: Dialect, target: Dialect, translator: Translator | None = None
) -> Covering:
    """The narrowest subscriptions of `target` that cover the subscription `text` of `source`.

    Raises:
        SubjectError: it is illegal; TranslationError: nothing in the target covers it;
        LimitError: what does is past a limit of the target.
    """
    meant = [found for own in _own_patterns(text, source) for found in meanings(own, source)]
    made: list[Cover] = []
    for pattern, same in meant:
        more = () if same else (f"is selected by {text!r}",)
        made += [
            Cover(cover.levels, (*cover.reasons, *more), cover.shorter)
            for cover in covers_of(pattern, source, target)
        ]
    found = _texts(_merged(made), target)
    reasons = list(dict.fromkeys(reason for known in found.values() for reason in known))
    return Covering(
        source,
        target,
        text,
        _minimal(tuple(found), target),
        _residual(text, reasons, source, of_one=len(meant) == 1),
        next(filter(None, (omitted(pattern, source, target) for pattern, _ in meant)), ""),
        translator or Translator(source, target),
    )


def _residual(text: str, reasons: list[str], source: Dialect, *, of_one: bool) -> str:
    if not reasons or of_one:
        return " and ".join(reasons)
    start = text.removesuffix("*")
    if source.tag_lists and start and start != text and "*" not in start and "," not in text:
        return f"begins with {start!r} and goes on"
    return f"{source.name} {text!r} selects it"


def _own_patterns(text: str, source: Dialect) -> tuple[Pattern, ...]:
    """What `text` selects; of a YAMI4 list that only selects an equal list, its first tag too."""
    patterns = read_pattern(text, source)
    if not source.tag_lists or "," not in text:
        return patterns
    tags = [tag.split(".") for tag in text.split(",")]
    if any(matches(pattern, tag) for pattern in patterns for tag in tags):
        return patterns
    return (*patterns, Pattern(tuple(map(Literal, tags[0]))))


def _merged(made: list[Cover]) -> dict[Levels, tuple[str, ...]]:
    """Levels and their reasons, where a name that ends and one that goes on are one (`a.>`)."""
    merged: dict[Levels, tuple[str, ...]] = {}
    ends = dict.fromkeys(cover.levels for cover in made)
    for cover in made:
        levels, shorter = cover.levels, cover.shorter
        more = (shorter,) if shorter and levels[:-1] not in ends else ()
        merged[levels] = (*merged.get(levels, ()), *cover.reasons, *more)
    for levels in ends:
        if levels[-1] == AnyOne() and (longer := (*levels, AnyMany(1))) in merged:
            both = (*merged.pop(levels), *merged.pop(longer))
            merged[(*levels[:-1], AnyMany(1))] = both
    everything = merged.pop((AnyOne(), AnyMany(0)), None)
    if everything is not None:
        merged[AnyMany(0),] = everything
    return merged


def _texts(made: dict[Levels, tuple[str, ...]], target: Dialect) -> dict[str, tuple[str, ...]]:
    """What is written to the target, and what each text selects too much."""
    found: dict[str, tuple[str, ...]] = {}
    for levels, reasons in made.items():
        pairs = (
            tag_covers(levels, reasons) if target.tag_lists else [(_text(levels, target), reasons)]
        )
        for text, surplus in pairs:
            over = over_limit(text, split(text, target), target, made=False)
            if over is not None:
                limit, actual, most = over
                raise LimitError(target.name, text, limit.rule, limit.unit.value, actual, most)
            found[text] = (*found.get(text, ()), *surplus)
    return found


def _text(levels: Levels, target: Dialect) -> str:
    words: list[str] = []
    for level in levels:
        match level:
            case Literal(text):
                words.append(text)
            case Glob(parts):
                words.append("*".join(parts))
            case AnyOne():
                words.append(target.any_one)
            case AnyMany():
                words.append(target.any_many)
    return target.leading + target.separator.join(words)


def _minimal(texts: tuple[str, ...], target: Dialect) -> tuple[str, ...]:
    """`texts` without those that the others cover."""
    if not 1 < len(texts) <= COMPARED:
        return texts
    kept = {text: read_pattern(text, target) for text in texts}
    for text in texts:
        others = [pattern for other in kept if other != text for pattern in kept[other]]
        with suppress(LimitError):  # too hard to say in time: it stays
            if covers(others, kept[text]):
                del kept[text]
    return tuple(kept)
