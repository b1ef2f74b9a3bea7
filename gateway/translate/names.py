"""Translation of names: `Translator` from text to text, `Renderer` from the canonical form."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate, takewhile
from typing import Final

from gateway.dialects.dialect import TAG_SEPARATOR, Dialect
from gateway.dialects.names import (
    find_surrogate,
    parse_subject,
    read_tags,
    refuse_reserved,
    refuse_surrogate,
    render_levels,
    system_fault,
    too_long,
)
from gateway.errors import GatewayError, IllegalNameError, LimitError, TranslationError
from gateway.model.dead_letter_rule import EMPTY_NAME, TAG_LIST, UNSPELLABLE
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.subject import Subject
from gateway.translate.shorten import (
    ShortNames,
    ShortNamesInMemory,
    digest_of,
    marked,
    resolved,
    shortened,
)

MAX_CACHE_SIZE: Final = 32 << 20  # bytes of the translations of a translator


class OnUnmappable(Enum):
    """The treatment of characters and levels that the target cannot spell."""

    ESCAPE = "escape"  # written as a token, reversible
    REJECT = "reject"  # the name is refused
    REPLACE = "replace"  # one chosen character: two names may become one


class OnTooLong(Enum):
    """The treatment of a name that is too long or too deep for the target."""

    REFUSE = "refuse"
    SHORTEN = "shorten"  # the end of the name becomes a digest


@dataclass(frozen=True)
class Renderer:
    """Renders subjects for one target, with the settings of its endpoint or route.

    `replies` accepts names of the target system to which a reply may be sent.

    Raises:
        GatewayError: `replacement` is not one character that the target can always spell.
    """

    dialect: Dialect
    on_unmappable: OnUnmappable = OnUnmappable.ESCAPE
    on_too_long: OnTooLong = OnTooLong.REFUSE
    replacement: str = "-"
    replies: bool = False
    dictionary: ShortNames = field(default_factory=ShortNamesInMemory, compare=False)

    def __post_init__(self) -> None:
        char = self.replacement
        if (
            len(char) != 1
            or self.dialect.codec.unspellable([char])
            or self.dialect.spelled_later(char) != char  # SmartSockets: `/` separates there
            or find_surrogate(char) is not None
        ):
            raise GatewayError(f"{self.dialect.name}: {char!r} cannot stand for other characters")

    def render(self, subject: Subject) -> str:
        """Return the name of `subject` at the target.

        Raises:
            TranslationError: the target has no such name.
            LimitError: the name is too long or too deep.
        """
        levels = subject.levels
        name = self.dialect.name
        if (error := self._far_too_long(levels)) is not None:
            if not self._shortens:
                raise error
            if self.on_unmappable is not OnUnmappable.REJECT:
                return self._shorten_long(levels, error)
        if not levels:
            raise TranslationError(name, "", EMPTY_NAME, "a subject has one level at least")
        if self.on_unmappable is OnUnmappable.REJECT and (
            lost := self.dialect.codec.unspellable(levels)
        ):
            reason = f"{', '.join(map(repr, lost))} cannot be spelled here and is not to be escaped"
            raise TranslationError(name, self.dialect.text_of(levels), UNSPELLABLE, reason)
        spelled = self._spell(levels)
        if not self._shortens:
            return render_levels(spelled, self.dialect, replies=self.replies)
        try:
            return render_levels(marked(spelled), self.dialect, replies=self.replies)
        except LimitError as error:
            return self._shortened(spelled, levels, error)

    @property
    def _shortens(self) -> bool:
        return self.on_too_long is OnTooLong.SHORTEN and self.dialect.key is None

    def _far_too_long(self, levels: tuple[str, ...]) -> LimitError | None:
        """Return the error of a name that no spelling makes short enough; None for others."""
        largest = self.dialect.largest_size
        if len(levels) <= largest and sum(map(len, levels)) <= largest:
            return None
        return too_long(self.dialect.text_of(levels), levels, self.dialect)

    def _shorten_long(self, levels: tuple[str, ...], error: LimitError) -> str:
        """Shorten a name of which no more is spelled than can fit.

        Its work is bounded by the limit of the target, not by the length of the name.
        """
        largest = self.dialect.largest_size
        refuse_surrogate("".join(levels), self.dialect)
        ends = accumulate(len(level) + 1 for level in levels)
        count = sum(1 for _ in takewhile(largest.__ge__, ends))
        spelled = self._spell(levels[:count] or (levels[0][:largest],))
        return self._shortened([*spelled, ""], levels, error)  # the last one is always cut

    def _spell(self, levels: tuple[str, ...]) -> list[str]:
        if self.on_unmappable is OnUnmappable.REPLACE:
            return self.dialect.codec.replaced(levels, self.replacement)
        return self.dialect.codec.encode(levels)

    def _shortened(self, spelled: list[str], levels: tuple[str, ...], error: LimitError) -> str:
        digest = digest_of(levels)
        refuse_reserved(spelled, digest, self.dialect, replies=self.replies)
        fitting = shortened(spelled, digest, self.dialect)
        if fitting is None:
            raise error
        self.dictionary.remember(digest, levels)
        return render_levels(fitting, self.dialect, replies=self.replies)


class Translator:
    """Translates names of `source` by `renderer`; caches up to MAX_CACHE_SIZE bytes of them.

    With its `replies`, names that belong to the source system are accepted, and names of the target
    system to which a reply may be sent are made.
    Mutable: a cache; concurrent calls may translate the same name twice.
    """

    def __init__(self, source: Dialect, renderer: Renderer) -> None:
        self.source, self.target, self.renderer = source, renderer.dialect, renderer
        self._is_plain = _plain_name(source, self.target)
        self._safe_length, self._safe_ascii, self._safe_depth = _safe_size(source, self.target)
        self.name: Callable[[str], str] = _Cache(self._translate).__getitem__

    def names(self, text: str) -> tuple[str, ...]:
        """Return one name for each distinct tag of a tag list, or the name of a single name.

        Raises:
            SubjectError: as `name`, for the first tag without a translation.
            TranslationError: likewise.
        """
        tags = dict.fromkeys(text.split(TAG_SEPARATOR)) if self.source.tag_lists else [text]
        return tuple(dict.fromkeys(map(self.name, tags)))

    def subject(self, text: str) -> Subject:
        """Return the canonical form of a name of the source.

        Raises:
            SubjectError: the name is illegal, or is never bridged.
            TranslationError: a tag list of several tags, or a digest missing in the dictionary.
        """
        if self.source.tag_lists and TAG_SEPARATOR in text:
            read_tags(text, self.source)
            reason = "a list of several tags is no single name; translate each tag"
            raise TranslationError(self.target.name, text, TAG_LIST, reason)
        canonical = parse_subject(text, self.source).levels
        if not self.renderer.replies and (fault := system_fault(canonical, self.source)):
            raise IllegalNameError(self.source.name, text, 0, *fault)
        if canonical == ("",):
            raise TranslationError(self.target.name, text, EMPTY_NAME, "the whole name is empty")
        if self.renderer.on_too_long is OnTooLong.SHORTEN:
            canonical = resolved(canonical, text, self.source, self.renderer.dictionary)
        return Subject(canonical)

    def _translate(self, text: str) -> str:
        separator = self.source.separator
        size = len(text)
        short = size <= self._safe_length or (size <= self._safe_ascii and text.isascii())
        if short and text.count(separator) < self._safe_depth and self._is_plain(text):
            bare = text[len(self.source.leading) :]
            return self.target.leading + bare.replace(separator, self.target.separator)
        return self.renderer.render(self.subject(text))


class _Cache(LimitedCache[str, str]):
    """A bounded cache of translations by name; refusals are not cached.

    Mutable: owned by its `Translator`.
    """

    def __init__(self, translate: Callable[[str], str]) -> None:
        super().__init__(MAX_CACHE_SIZE)
        self._translate = translate

    def __missing__(self, text: str) -> str:
        found = self._translate(text)
        self.add(text, found, text_size(text) + text_size(found))
        return found


def _plain_name(source: Dialect, target: Dialect) -> Callable[[str], object]:
    """Return a test for names without special text in either system, as most names are."""
    if target.refusals is not None:
        return lambda _text: None
    special = {"%", "~", target.separator, target.leading, source.separator}
    for dialect in (source, target):
        special |= {*dialect.forbidden, *dialect.swapped_characters}
        special |= set("".join(dialect.reserved_levels))
        special |= {char for inbox in dialect.inbox_levels for char in inbox[:1]}
    plain = f"[^{re.escape(''.join(special))}\ud800-\udfff]+"
    if source.alphabet or target.alphabet:
        plain = "[A-Za-z0-9]+"
    first = "".join({rule.character for each in (source, target) for rule in each.prefix_rules})
    start = re.escape(source.leading) + (f"(?![{re.escape(first)}])" if first else "")
    return re.compile(f"{start}{plain}(?:{re.escape(source.separator)}{plain})*").fullmatch


def _safe_size(source: Dialect, target: Dialect) -> tuple[int, ...]:
    """Return the characters, ASCII characters and levels that exceed no limit of either system."""
    both = zip(source.safe_size, target.safe_size, strict=True)
    return tuple(min(pair) - len(target.leading) for pair in both)
