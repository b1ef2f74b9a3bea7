"""Names too long for a system, cut at a level and ended by a digest; a dictionary leads back.

A shortened name ends in `~` and 26 letters and digits, 128 bits of BLAKE2b over the whole name.
Where names are shortened, one that looks so by itself gets one more `~`: the two never meet.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Protocol

from gateway.dialects.dialect import Dialect
from gateway.dialects.limits import over_limit
from gateway.errors import TranslationError

DIGEST = re.compile(r"~[a-z2-7]{26}")
LOOKS_SHORTENED = re.compile(r"~+[a-z2-7]{26}")


class Dictionary(Protocol):
    """Where shortened names are kept; the runtime gives one that lasts."""

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        """Keep what `digest` stands for; it comes again for a name seen before."""

    def recall(self, digest: str) -> tuple[str, ...] | None:
        """The levels, of the middle, that `digest` stands for."""


class Shortened:
    """A dictionary in memory; mutable, because it is what was shortened so far.

    `tell` hears of every new one before it is used, so that somebody can write it down.
    """

    def __init__(self, tell: Callable[[str, tuple[str, ...]], None] | None = None) -> None:
        self.names: dict[str, tuple[str, ...]] = {}
        self.tell = tell

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        if digest not in self.names:
            if self.tell is not None:
                self.tell(digest, levels)
            self.names[digest] = levels

    def recall(self, digest: str) -> tuple[str, ...] | None:
        return self.names.get(digest)


def digest_of(levels: Sequence[str]) -> str:
    """The level that stands for the whole name `levels` of the middle."""
    whole = "".join(f"{len(level)}:{level}" for level in levels)
    return "~" + b32encode(blake2b(whole.encode(), digest_size=16).digest())[:26].decode().lower()


def shortened(spelled: Sequence[str], digest: str, dialect: Dialect) -> list[str] | None:
    """As many of the levels as fit with `digest` behind them; None when it fits not even alone."""
    if not _fits([digest], dialect):
        return None
    low, high = 0, len(spelled) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _fits([*spelled[:middle], digest], dialect):
            low = middle
        else:
            high = middle - 1
    return [*spelled[:low], digest]


def marked(spelled: list[str]) -> list[str]:
    """Escaped levels of a whole name, told apart from a shortened one."""
    if LOOKS_SHORTENED.fullmatch(spelled[-1]):
        return [*spelled[:-1], "~" + spelled[-1]]
    return spelled


def resolved(
    levels: tuple[str, ...], text: str, dialect: Dialect, dictionary: Dictionary
) -> tuple[str, ...]:
    """The whole name, of the middle, that a name which may be shortened stands for.

    `levels` are of the middle too: no system escapes a digest.

    Raises:
        TranslationError: it is shortened, and the dictionary does not know it.
    """
    last = levels[-1]
    if DIGEST.fullmatch(last):
        found = dictionary.recall(last)
        if found is None:
            reason = f"{last!r} stands for a name that nobody remembers"
            raise TranslationError(dialect.name, text, "unknown-digest", reason)
        return found
    if LOOKS_SHORTENED.fullmatch(last):
        return (*levels[:-1], last[1:])
    return levels


def _fits(spelled: Sequence[str], dialect: Dialect) -> bool:
    text = dialect.leading + dialect.separator.join(spelled)
    return over_limit(text, spelled, dialect, made=True) is None
