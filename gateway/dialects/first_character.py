"""First characters with a special meaning in a system, and a mapping that keeps names distinct.

For a character `c` with the code `HH` and any rest, the texts `c` + rest, `%HH` + rest,
`%25HH` + rest, `%2525HH` + rest ... form a series. Each rule maps such a series one-to-one onto
the members of the series that the system allows, so two names never become one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class PrefixMapping(Enum):
    """The mapping of a series from the canonical form to the system."""

    KEEP = "each member stays"
    SWAP = "the first two change places: `c` has another meaning here than in the canonical form"
    SHIFT = "each member becomes the next one: no name here begins with `c`"


@dataclass(frozen=True)
class PrefixRule:
    """The meaning of `character` as the first character of a name.

    Prefixes (with the character): `ordinary` begin ordinary names. `reserved` begin names of the
    system, which are received and never sent to. `reply_only` begin names of the system that are
    sent to only with a reply. `local` names never leave the system.
    """

    character: str
    mapping: PrefixMapping
    ordinary: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    reply_only: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    @cached_property
    def allowed_prefixes(self) -> tuple[str, ...]:
        """Every prefix that a name may have although `mapping` is `SHIFT`."""
        return self.ordinary + self.reserved + self.reply_only + self.local

    @cached_property
    def system_prefixes(self) -> tuple[str, ...]:
        """The prefixes of names that belong to the system."""
        return self.reserved + self.reply_only

    @cached_property
    def series(self) -> re.Pattern[str]:
        """The beginnings of the members of the series."""
        return re.compile(rf"{re.escape(self.character)}|%((?:25)*){ord(self.character):02X}")

    def mapped(self, text: str, *, outward: bool) -> str:
        """Map `text` to the system (`outward`), or from the system to the canonical form."""
        found = self.series.match(text)
        if found is None:
            return text
        rest = text[found.end() :]
        rank = 0 if found[1] is None else 1 + len(found[1]) // 2
        mapping = self._mapping_of(self.character + rest)
        if mapping is PrefixMapping.SWAP and rank < 2:  # noqa: PLR2004  # the first two members
            rank = 1 - rank
        elif mapping is PrefixMapping.SHIFT:
            rank += 1 if outward else -1
        if rank <= 0:
            return self.character + rest
        return f"%{'25' * (rank - 1)}{ord(self.character):02X}{rest}"

    def _mapping_of(self, plain: str) -> PrefixMapping:
        if plain.startswith(self.ordinary):
            return PrefixMapping.KEEP
        if plain.startswith(self.system_prefixes):
            return PrefixMapping.SWAP
        return self.mapping
