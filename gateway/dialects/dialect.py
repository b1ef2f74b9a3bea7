"""A dialect: the naming rules of one system, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, cached_property
from sys import maxsize
from typing import NamedTuple

from gateway.dialects.alphabet import AlphabetCodec
from gateway.dialects.escape import (
    CharacterSearch,
    Codec,
    LevelCodec,
    character_search,
    make_codec,
)
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.dialects.name_limits import Refusals
from gateway.dialects.parts import BOUNDARY, PartsCodec, boundary_of, divided
from gateway.model.dead_letter_rule import (
    FORBIDDEN_CHARACTER,
    NUL,
    WILDCARD_IN_NAME,
    DeadLetterRule,
)
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import NO_EXCLUSIONS, WildcardExclusions

MAX_BYTES_PER_CHARACTER = 4  # in UTF-8
MAX_UNMEASURED = 10_000  # characters or levels; longer names are measured even without a limit
TAG_SEPARATOR = ","  # between the names of a tag list (YAMI4 book, 7.2.1)


class WildcardPlacement(Enum):
    """The positions of the one-level wildcard character in a subscription."""

    ALONE = "it fills a level, and is an error inside one"
    PLAIN = "it fills a level, and is an ordinary character inside one"
    PREFIX = "it fills a level or ends it after a prefix"
    INNER = "anywhere in a level, any number of times"
    TAG = "as in a YAMI4 tag, see `tags`"


class Prohibition(NamedTuple):
    """The rule that forbids a character: its short name for scripts and its text for people."""

    rule: DeadLetterRule
    reason: str


def wildcards_forbidden(characters: str) -> dict[str, Prohibition]:
    """Forbid wildcard characters in names; `Dialect.forbidden` takes the result."""
    return {
        char: Prohibition(WILDCARD_IN_NAME, f"{char!r} is a wildcard, and this is a name")
        for char in characters
    }


NUL_FORBIDDEN: Mapping[str, Prohibition] = {"\0": Prohibition(NUL, "NUL cannot stand in it")}


@dataclass(frozen=True)  # no slots: cached properties need a __dict__
class Dialect:
    """The naming rules of one system.

    `forbidden` maps each character that no level of a name contains to the rule that forbids it.
    The rule holds for subscriptions too, except for the system's own wildcard characters.
    `alphabet` are the characters of levels where the system states these, as the inside of a
    regular expression's set. `forbidden_topics` are texts that no whole topic equals. With `key`, a
    name has two parts (`gateway.dialects.parts`): the facts here are those of the topic, and `key`
    has the facts of the key.
    `reserved_levels` are texts that no whole level of a name equals. `swapped_characters` are two
    characters that change places on the way to the canonical form. A level in `inbox_levels`
    belongs to one client. An address that begins with one of `kind_prefixes` is another kind of
    destination, such as a queue. `exclusions` is in this system's own spelling. `joined` are the
    systems to which the server forwards names: a name sent to this system must be legal in all of
    them.
    """

    name: str
    level_noun: str  # the vendor's word for a level
    separator: str
    any_one: str
    any_many: str
    any_many_minimum: int  # 0 when the wildcard also matches its parent level
    reference: str  # the document that states these rules
    leading: str = ""
    any_many_anywhere: bool = False
    wildcard_placement: WildcardPlacement = WildcardPlacement.ALONE
    empty_levels: bool = True
    empty_levels_in_patterns: bool = True
    forbidden: Mapping[str, Prohibition] = field(default_factory=dict, hash=False)
    alphabet: str = ""
    forbidden_topics: tuple[str, ...] = ()
    reserved_levels: tuple[str, ...] = ()
    swapped_characters: str = ""
    exclusions: WildcardExclusions = NO_EXCLUSIONS
    prefix_rules: tuple[PrefixRule, ...] = ()
    inbox_levels: tuple[str, ...] = ()
    kind_prefixes: tuple[str, ...] = ()  # of an endpoint's addresses
    tag_lists: bool = False
    shared_prefix: str = ""  # begins a shared subscription: this prefix, a group, a filter
    warn_unprintable: bool = False  # spaces and unprintable characters: legal, advised against
    limits: tuple[Limit, ...] = ()
    advised_limits: tuple[Limit, ...] = ()  # a longer name is legal and gets a warning
    joined: tuple[Dialect, ...] = ()
    refuses_closing: bool = False  # no client sends a name with one of `closing_characters`
    server_levels: tuple[str, ...] = ()  # first levels that a broker keeps for names of its own
    refusals: Refusals | None = None  # of an endpoint, beside its limits
    key: Dialect | None = None

    def joined_with(self, others: Sequence[Dialect]) -> Dialect:
        """Return this dialect for a server that imports from and exports to `others`."""
        return replace(self, joined=tuple(others)) if others else self

    def with_kinds(self, prefixes: Sequence[str]) -> Dialect:
        """Return this dialect for an endpoint whose addresses have these `kind_prefixes`.

        Equal calls return one object: proofs compare dialects by identity.
        """
        return _with_kinds(self, tuple(prefixes)) if prefixes else self

    def find_kind(self, text: str) -> str:
        """Return the prefix with which `text` chooses a kind of destination, or no text."""
        if not text.startswith(self.kind_prefixes):
            return ""
        return next(prefix for prefix in self.kind_prefixes if text.startswith(prefix))

    def is_unsubscribable(self, first_level: str) -> bool:
        """Return whether a filter cannot begin with this level, as `$share` in MQTT."""
        return bool(self.shared_prefix) and first_level + self.separator == self.shared_prefix

    def text_of(self, levels: Sequence[str]) -> str:
        """Return the name with these levels, which are in the spelling of this system."""
        if self.key is not None and (at := boundary_of(levels)) < len(levels):
            topic, key = self.separator.join(levels[:at]), self.separator.join(levels[at + 1 :])
            return f"{topic}{BOUNDARY}{key}"
        return self.leading + self.separator.join(levels)

    def levels_of(self, text: str) -> tuple[str, ...]:
        """Return the levels of a text, in the spelling of this system."""
        if self.key is not None:
            topic, between, key = text.partition(BOUNDARY)
            levels = key.split(self.separator) if key else ()
            return (*topic.split(self.separator), *between, *levels)
        return tuple(text.removeprefix(self.leading).split(self.separator))

    def limited(self, text: str, levels: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Return the part of a name that the limits concern, and its levels: the topic, or all."""
        if self.key is None:
            return text, levels
        return text.partition(BOUNDARY)[0], levels[: boundary_of(levels)]

    def misplaces_boundary(self, levels: Sequence[str]) -> bool:
        """Return whether a level that is not the boundary of a name reads as the boundary."""
        if self.key is None:
            return False
        topic, _, key = divided(levels)
        return BOUNDARY in key or self._spelled_boundary in topic

    def prohibition(self, char: str) -> Prohibition:
        """Return the rule that forbids a character."""
        return self.forbidden.get(char) or Prohibition(
            FORBIDDEN_CHARACTER, f"{char!r} is none of the characters of a name"
        )

    def spelled_later(self, text: str) -> str:
        """Return the spelling of a canonical level that is not the first of its name."""
        return self.codec.encode(["x", text])[1]

    @cached_property
    def safe_size(self) -> tuple[int, int, int]:
        """Characters, ASCII characters and levels of a name that no limit can exclude."""
        depths = [limit.maximum for limit in self.limits if limit.unit is Unit.LEVELS]
        depth = min([MAX_UNMEASURED, *depths])
        maxima = [(limit.unit, limit.maximum_made(depth)) for limit in self.limits]
        sizes = [size for unit, size in maxima if unit is not Unit.LEVELS]
        wide = [size // MAX_BYTES_PER_CHARACTER for unit, size in maxima if unit is Unit.BYTES]
        return min([MAX_UNMEASURED, *sizes, *wide]), min([MAX_UNMEASURED, *sizes]), depth

    @cached_property
    def largest_size(self) -> int:
        """A number of characters, and of levels, that no name within the limits has."""
        if self.key is not None:
            return maxsize  # a key has no limit
        units = (Unit.CHARACTERS, Unit.BYTES)
        sizes = [limit.maximum for limit in self.limits if limit.unit in units]
        return 2 * min(sizes, default=maxsize) + 64  # a prefix of the system may be removed

    @cached_property
    def find_forbidden(self) -> CharacterSearch:
        """Search a name for its first forbidden character."""
        if self.alphabet:
            return re.compile(f"[^{self.alphabet}{re.escape(self.separator)}]").search
        return character_search(self.forbidden)

    @cached_property
    def find_forbidden_in_pattern(self) -> CharacterSearch:
        """Search a subscription, or a tag list of them, for its first forbidden character."""
        allowed = {*self.any_one, *self.any_many, *(TAG_SEPARATOR if self.tag_lists else "")}
        if self.alphabet:
            signs = re.escape("".join(sorted({self.separator, *allowed})))
            return re.compile(f"[^{self.alphabet}{signs}]").search
        return character_search([char for char in self.forbidden if char not in allowed])

    @cached_property
    def reserved_level_set(self) -> frozenset[str]:
        return frozenset(self.reserved_levels)

    @cached_property
    def forbidden_prefix_rules(self) -> tuple[PrefixRule, ...]:
        """The rules of characters with which no client's name begins."""
        return tuple(rule for rule in self.prefix_rules if rule.mapping is PrefixMapping.SHIFT)

    @cached_property
    def system_starts(self) -> tuple[str, ...]:
        """The beginnings of the system's own names, in the canonical form."""
        prefixes = [prefix for rule in self.prefix_rules for prefix in rule.system_prefixes]
        return tuple(self.codec.decode([prefix])[0] for prefix in prefixes)

    @cached_property
    def system_levels(self) -> frozenset[str]:
        """The levels that make a name the inbox of one client, in the canonical form."""
        return frozenset(
            self.codec.decode(levels)[-1]
            for inbox in self.inbox_levels
            for levels in ([inbox], ["x", inbox])
        )

    @cached_property
    def codec(self) -> LevelCodec:
        """The escape codec for levels of this system."""
        if self.key is not None:
            one_level = replace(self.key, empty_levels=False).codec
            return PartsCodec(self.topic.codec, self.key.codec, one_level)
        return AlphabetCodec(self.alphabet, self.prefix_rules) if self.alphabet else self.escapes

    @cached_property
    def topic(self) -> Dialect:
        """The rules of the topic in a name of two parts."""
        return replace(self, key=None)

    @cached_property
    def _spelled_boundary(self) -> str:
        return self.topic.codec.encode([BOUNDARY])[0]

    @cached_property
    def escapes(self) -> Codec:
        """The codec with `%` and the code of a character, for systems without an `alphabet`."""
        reserved = self.reserved_levels if self.empty_levels else ("", *self.reserved_levels)
        return make_codec(
            "".join((self.separator, *self.forbidden)),
            self.swapped_characters,
            reserved,
            self.inbox_levels,
            self.prefix_rules,
        )


@cache
def _with_kinds(dialect: Dialect, prefixes: tuple[str, ...]) -> Dialect:
    return replace(dialect, kind_prefixes=prefixes)
