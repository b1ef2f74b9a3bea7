"""A dialect: the naming rules of one system, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, cached_property
from sys import maxsize
from typing import NamedTuple

from gateway.dialects.escape import CharacterSearch, Codec, character_search, make_codec
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.dialects.name_limits import Refusals
from gateway.model.dead_letter_rule import NUL, WILDCARD_IN_NAME, DeadLetterRule
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
    server_levels: tuple[str, ...] = ()  # first levels that a broker keeps for names of its own
    refusals: Refusals | None = None  # of an endpoint, beside its limits

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
        units = (Unit.CHARACTERS, Unit.BYTES)
        sizes = [limit.maximum for limit in self.limits if limit.unit in units]
        return 2 * min(sizes, default=maxsize) + 64  # a prefix of the system may be removed

    @cached_property
    def find_forbidden(self) -> CharacterSearch:
        """Search a name for its first forbidden character."""
        return character_search(self.forbidden)

    @cached_property
    def find_forbidden_in_pattern(self) -> CharacterSearch:
        """Search a subscription, or a tag list of them, for its first forbidden character."""
        allowed = {*self.any_one, *self.any_many, *(TAG_SEPARATOR if self.tag_lists else "")}
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
    def codec(self) -> Codec:
        """The escape codec for levels of this system."""
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
