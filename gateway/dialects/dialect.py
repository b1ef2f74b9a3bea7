"""What tells one system's names from another's, as data; the behaviour over it is elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from gateway.dialects.escape import Codec, codec
from gateway.dialects.first_character import FirstRule, Turn
from gateway.errors import GatewayError
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import BOLD, Shy

UTF8_BYTES = 4  # of one character, at most
MANY = 10_000  # characters or levels; more are measured even where no limit is stated


class Star(Enum):
    """Where the one-level wildcard character may stand in a subscription."""

    ALONE = "it fills a level, and is an error inside one"
    PLAIN = "it fills a level, and is an ordinary character inside one"
    PREFIX = "it fills a level or ends it after a prefix"
    INNER = "anywhere in a level, any number of times"
    TAG = "as a YAMI4 tag has it"


@dataclass(frozen=True)  # no slots: the codec is made once and kept
class Dialect:
    """How one system spells names and subscriptions.

    `forbidden` characters and the `whole` texts never occur as (or in) a level of a name;
    `traded` holds two characters that change places on the way to the middle; a level in
    `inboxes` belongs to one client. `shy` is in this system's own spelling. `also` are systems
    to which the server passes names on: what is sent there has to be legal in all of them.
    """

    name: str
    part: str  # the vendor's word for a level
    separator: str
    any_one: str
    any_many: str
    any_many_minimum: int  # 0 when the wildcard also matches its parent level
    source: str
    leading: str = ""
    any_many_anywhere: bool = False
    star: Star = Star.ALONE
    empty_levels: bool = True
    empty_in_patterns: bool = True
    forbidden: str = ""
    whole: tuple[str, ...] = ()
    traded: str = ""
    shy: Shy = BOLD
    first: tuple[FirstRule, ...] = ()
    inboxes: tuple[str, ...] = ()
    tag_lists: bool = False
    unused_first: tuple[str, ...] = ()  # first levels a subscription cannot ask for
    limits: tuple[Limit, ...] = ()
    advised: tuple[Limit, ...] = ()  # beyond these is legal, and worth a warning
    also: tuple[Dialect, ...] = ()

    def joined_with(self, others: Sequence[Dialect]) -> Dialect:
        """This dialect for a server that imports from and exports to `others`."""
        return replace(self, also=tuple(others)) if others else self

    def with_limits(self, **maxima: int) -> Dialect:
        """This dialect for an endpoint that takes less: `MQTT.with_limits(levels=8, bytes=256)`.

        Keys: `bytes`, `characters`, `levels`, `level_characters`. A limit is never loosened.
        Without any it is this dialect itself: proofs tell dialects apart by being one object.

        Raises:
            GatewayError: an unknown key, or a maximum below 1.
        """
        limits = list(self.limits)
        for key, maximum in maxima.items():
            if key.upper() not in Unit.__members__:
                known = ", ".join(unit.name.lower() for unit in Unit)
                raise GatewayError(f"{self.name}: unknown limit {key!r}; known are {known}")
            if maximum < 1:
                raise GatewayError(f"{self.name}: limit {key} is {maximum}, below 1")
            limits.append(Limit(Unit[key.upper()], maximum, "the endpoint's settings"))
        return replace(self, limits=tuple(limits)) if maxima else self

    @cached_property
    def surely_fits(self) -> tuple[int, int, int]:
        """Characters, characters of ASCII and levels that are within every limit together."""
        depths = [limit.maximum for limit in self.limits if limit.unit is Unit.LEVELS]
        depth = min([MANY, *depths])
        rooms = [(limit.unit, limit.made(depth)) for limit in self.limits]
        sizes = [room for unit, room in rooms if unit is not Unit.LEVELS]
        wide = [room // UTF8_BYTES for unit, room in rooms if unit is Unit.BYTES]
        return min([MANY, *sizes, *wide]), min([MANY, *sizes]), depth

    @cached_property
    def forbidden_in(self) -> Callable[[str], re.Match[str] | None]:
        """The first character of a name that no name holds."""
        return re.compile(f"[{re.escape(self.forbidden)}]" if self.forbidden else "(?!)").search

    @cached_property
    def whole_set(self) -> frozenset[str]:
        return frozenset(self.whole)

    @cached_property
    def forbidding(self) -> tuple[FirstRule, ...]:
        """The first characters that no client's name begins with."""
        return tuple(rule for rule in self.first if rule.turn is Turn.SHIFT)

    @cached_property
    def codec(self) -> Codec:
        """How its levels are escaped."""
        whole = self.whole if self.empty_levels else ("", *self.whole)
        return codec(self.separator + self.forbidden, self.traded, whole, self.inboxes, self.first)
