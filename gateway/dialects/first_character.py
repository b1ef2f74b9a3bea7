"""First characters that a system treats in a way of its own, and how names keep apart there.

For a character `c` with the code `HH` and any rest, the texts `c` + rest, `%HH` + rest,
`%25HH` + rest, `%2525HH` + rest ... form a row. Each rule below sends such a row one-to-one onto
the part of it that the system has, so no two names meet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Turn(Enum):
    """What becomes of the row on the way from the middle to the system."""

    KEEP = "each stays"
    SWAP = "the first two change places: `c` here means something else than in the middle"
    SHIFT = "each becomes the next, for nothing here begins with `c`"


@dataclass(frozen=True)
class FirstRule:
    """What a name's first character `char` means here.

    Prefixes (with the character): `kept` are ordinary names all the same; `reserved` are the
    system's own, received and never sent to; `answered` are its own too, and sent to when a
    reply has to reach them; `local` names never leave the system.
    """

    char: str
    turn: Turn
    kept: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Every prefix that may stand here although `turn` is `SHIFT`."""
        return self.kept + self.reserved + self.answered + self.local

    @cached_property
    def own(self) -> tuple[str, ...]:
        """Prefixes of names that belong to the system."""
        return self.reserved + self.answered

    @cached_property
    def row(self) -> re.Pattern[str]:
        return re.compile(rf"{re.escape(self.char)}|%((?:25)*){ord(self.char):02X}")

    def turned(self, text: str, *, outward: bool) -> str:
        """`text` as this system has it (`outward`), or as the middle has it."""
        found = self.row.match(text)
        if found is None:
            return text
        rest = text[found.end() :]
        rank = 0 if found[1] is None else 1 + len(found[1]) // 2
        turn = self._turn(self.char + rest)
        if turn is Turn.SWAP and rank < 2:  # noqa: PLR2004  # the first two of the row
            rank = 1 - rank
        elif turn is Turn.SHIFT:
            rank += 1 if outward else -1
        if rank <= 0:
            return self.char + rest
        return f"%{'25' * (rank - 1)}{ord(self.char):02X}{rest}"

    def _turn(self, plain: str) -> Turn:
        if plain.startswith(self.kept):
            return Turn.KEEP
        if plain.startswith(self.own):
            return Turn.SWAP
        return self.turn
