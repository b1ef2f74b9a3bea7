"""Names of one system in another: `Translator` from text to text, `Renderer` from the middle."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from gateway.dialects.dialect import Dialect
from gateway.dialects.names import (
    own_name,
    read_name,
    read_tags,
    refuse_own,
    spell,
    surrogate_in,
    unescape,
)
from gateway.errors import GatewayError, LimitError, SubjectError, TranslationError
from gateway.model.subject import Subject
from gateway.translate.shorten import (
    Dictionary,
    Shortened,
    digest_of,
    marked,
    resolved,
    shortened,
)

CACHED_NAMES = 100_000  # past this the memory starts anew


class Escape(Enum):
    """What becomes of characters and levels that the target cannot spell."""

    ESCAPE = "escape"  # a token, which the way back reads
    REJECT = "reject"  # the name is refused
    REPLACE = "replace"  # one chosen character: two names may become one


class Length(Enum):
    """What becomes of a name that the target does not take for its length or depth."""

    REFUSE = "refuse"
    SHORTEN = "shorten"  # its end becomes a digest


@dataclass(frozen=True)
class Renderer:
    """Spells subjects for one target, as its endpoint or route wants it.

    `replies` lets names of the target's own through that a reply has to reach.

    Raises:
        GatewayError: `replacement` is not one character that the target can always spell.
    """

    dialect: Dialect
    escape: Escape = Escape.ESCAPE
    length: Length = Length.REFUSE
    replacement: str = "-"
    replies: bool = False
    dictionary: Dictionary = field(default_factory=Shortened, compare=False)

    def __post_init__(self) -> None:
        char = self.replacement
        if len(char) != 1 or self.dialect.codec.lacking([char]) or surrogate_in(char) is not None:
            raise GatewayError(f"{self.dialect.name}: {char!r} cannot stand for other characters")

    def render(self, subject: Subject) -> str:
        """What `subject` is called at the target.

        Raises:
            TranslationError: it cannot be said there; LimitError: it is too long or too deep.
        """
        levels = subject.levels
        name = self.dialect.name
        if not levels:
            raise TranslationError(name, "", "empty-name", "a subject has one level at least")
        if self.escape is Escape.REJECT and (lost := self.dialect.codec.lacking(levels)):
            reason = f"{', '.join(map(repr, lost))} cannot be spelled here and is not to be escaped"
            raise TranslationError(name, self.dialect.separator.join(levels), "unspellable", reason)
        if self.escape is Escape.REPLACE:
            spelled = self.dialect.codec.replaced(levels, self.replacement)
        else:
            spelled = self.dialect.codec.encode(levels)
        if self.length is Length.REFUSE:
            return spell(spelled, self.dialect, replies=self.replies)
        return self._shorten(spelled, levels)

    def _shorten(self, spelled: list[str], levels: tuple[str, ...]) -> str:
        try:
            return spell(marked(spelled), self.dialect, replies=self.replies)
        except LimitError:
            digest = digest_of(levels)
            refuse_own(spelled, digest, self.dialect, replies=self.replies)
            fitting = shortened(spelled, digest, self.dialect)
            if fitting is None:
                raise
        self.dictionary.remember(digest, levels)
        return spell(fitting, self.dialect, replies=self.replies)


class Translator:
    """Names of `source` as `target` spells them; `name(text)` is a look-up for a name seen before.

    Mutable, because it remembers answers, `cached` at most. With `replies`, names that the
    systems keep for themselves come in, and those that a reply has to reach go out.
    """

    def __init__(  # noqa: PLR0913  # one setting of a mapping each
        self,
        source: Dialect,
        target: Dialect,
        *,
        escape: Escape = Escape.ESCAPE,
        length: Length = Length.REFUSE,
        replacement: str = "-",
        replies: bool = False,
        dictionary: Dictionary | None = None,
        cached: int = CACHED_NAMES,
    ) -> None:
        self.source, self.target = source, target
        self.dictionary = Shortened() if dictionary is None else dictionary
        self.renderer = Renderer(target, escape, length, replacement, replies, self.dictionary)
        self._easy = _easy_name(source, target)
        self._most, self._most_ascii, self._levels = _room(source, target)
        self.name: Callable[[str], str] = _Seen(self._first_sight, cached).__getitem__

    def names(self, text: str) -> tuple[str, ...]:
        """One name for each different tag of a tag list; elsewhere the one name.

        Raises:
            SubjectError, TranslationError: as `name`, for the first tag that has no name.
        """
        tags = dict.fromkeys(text.split(",")) if self.source.tag_lists else [text]
        return tuple(dict.fromkeys(map(self.name, tags)))

    def subject(self, text: str) -> Subject:
        """What a name of the source is in the middle.

        Raises:
            SubjectError: it is illegal, or not one that is bridged; TranslationError: a tag list
                of several tags, or a digest nobody remembers.
        """
        if self.source.tag_lists and "," in text:
            read_tags(text, self.source)
            reason = "a list of several tags is no single name; translate each tag"
            raise TranslationError(self.target.name, text, "tag-list", reason)
        levels = read_name(text, self.source)
        if not self.renderer.replies:
            own_name(levels, text, self.source)
            self._keep_inboxes(levels, text)
        meant = unescape(levels, text, self.source)
        if meant == ("",):
            raise TranslationError(self.target.name, text, "empty-name", "the whole name is empty")
        if self.renderer.length is Length.SHORTEN:
            meant = resolved(meant, text, self.source, self.dictionary)
        return Subject(meant)

    def _keep_inboxes(self, levels: tuple[str, ...], text: str) -> None:
        inboxes = self.source.inboxes
        if inboxes and any(level in inboxes for level in levels):
            reason = f"a {inboxes[0]!r} level is the inbox of one client"
            raise SubjectError(self.source.name, text, 0, "inbox", reason)

    def _first_sight(self, text: str) -> str:
        separator = self.source.separator
        size = len(text)
        short = size <= self._most or (size <= self._most_ascii and text.isascii())
        if short and text.count(separator) < self._levels and self._easy(text):
            bare = text[len(self.source.leading) :]
            return self.target.leading + bare.replace(separator, self.target.separator)
        return self.renderer.render(self.subject(text))


class _Seen(dict[str, str]):
    """Answers already given, by name; mutable and bounded for what it is. Refusals are not kept."""

    def __init__(self, answer: Callable[[str], str], most: int) -> None:
        super().__init__()
        self._answer, self._most = answer, most

    def __missing__(self, text: str) -> str:
        found = self._answer(text)
        if len(self) >= self._most:
            self.clear()
        self[text] = found
        return found


def _easy_name(source: Dialect, target: Dialect) -> Callable[[str], object]:
    """Whether a name has nothing that either system treats specially; most names have not."""
    special = {"%", "~", target.separator, target.leading, source.separator}
    for dialect in (source, target):
        special |= set(dialect.forbidden + dialect.traded + "".join(dialect.whole))
        special |= {char for inbox in dialect.inboxes for char in inbox[:1]}
    plain = f"[^{re.escape(''.join(special))}\ud800-\udfff]+"
    first = "".join({rule.char for each in (source, target) for rule in each.first})
    start = re.escape(source.leading) + (f"(?![{re.escape(first)}])" if first else "")
    return re.compile(f"{start}{plain}(?:{re.escape(source.separator)}{plain})*").fullmatch


def _room(source: Dialect, target: Dialect) -> tuple[int, ...]:
    """Characters, characters of ASCII and levels that break no limit of either system."""
    both = zip(source.surely_fits, target.surely_fits, strict=True)
    return tuple(min(pair) - len(target.leading) for pair in both)
