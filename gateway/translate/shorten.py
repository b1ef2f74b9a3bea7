"""Short names: names too long for a system, cut at a level and ended by a digest.

A short name ends in `~` and 26 letters and digits, 128 bits of BLAKE2b over the whole name. A
dictionary of short names maps it back. Where names are shortened, an original name of this form
gets one more `~`, so it never equals a short name.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Protocol

from gateway.dialects.dialect import Dialect
from gateway.dialects.limits import exceeded_limit
from gateway.errors import TranslationError

DIGEST = re.compile(r"~[a-z2-7]{26}")
LOOKS_SHORTENED = re.compile(r"~+[a-z2-7]{26}")


class ShortNames(Protocol):
    """A dictionary of short names; the one of the runtime is persistent."""

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        """Store the canonical levels behind `digest`; repeated calls are allowed."""

    def recall(self, digest: str) -> tuple[str, ...] | None:
        """Return the canonical levels behind `digest`, or None."""


class ShortNamesInMemory:
    """A dictionary of short names in memory.

    `on_new` is called with every new short name before its first use, for example to persist it.
    Mutable: shared by the translators of a gateway.
    """

    def __init__(self, on_new: Callable[[str, tuple[str, ...]], None] | None = None) -> None:
        self.names: dict[str, tuple[str, ...]] = {}
        self.on_new = on_new

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        if digest not in self.names:
            if self.on_new is not None:
                self.on_new(digest, levels)
            self.names[digest] = levels

    def recall(self, digest: str) -> tuple[str, ...] | None:
        return self.names.get(digest)


def digest_of(levels: Sequence[str]) -> str:
    """Return the level that stands for the whole name with these canonical `levels`."""
    whole = "".join(f"{len(level)}:{level}" for level in levels)
    return "~" + b32encode(blake2b(whole.encode(), digest_size=16).digest())[:26].decode().lower()


def shortened(spelled: Sequence[str], digest: str, dialect: Dialect) -> list[str] | None:
    """Return as many levels as fit with `digest` behind them; None when it alone is too long."""
    if not _fits([digest], dialect):
        return None
    low, high = 0, len(spelled) - 1
    while low < high:
        count = (low + high + 1) // 2
        if _fits([*spelled[:count], digest], dialect):
            low = count
        else:
            high = count - 1
    return [*spelled[:low], digest]


def marked(spelled: list[str]) -> list[str]:
    """Return escaped levels of a whole name, marked if the last one looks like a digest."""
    if LOOKS_SHORTENED.fullmatch(spelled[-1]):
        return [*spelled[:-1], "~" + spelled[-1]]
    return spelled


def resolved(
    levels: tuple[str, ...], text: str, dialect: Dialect, dictionary: ShortNames
) -> tuple[str, ...]:
    """Return the canonical levels of the whole name for a name that may be short.

    `levels` are canonical too: no system escapes a digest.

    Raises:
        TranslationError: the name is short and missing in the dictionary.
    """
    last = levels[-1]
    if DIGEST.fullmatch(last):
        found = dictionary.recall(last)
        if found is None:
            reason = f"{last!r} is a short name that the dictionary does not contain"
            raise TranslationError(dialect.name, text, "unknown-digest", reason)
        return found
    if LOOKS_SHORTENED.fullmatch(last):
        return (*levels[:-1], last[1:])
    return levels


def _fits(spelled: Sequence[str], dialect: Dialect) -> bool:
    text = dialect.leading + dialect.separator.join(spelled)
    return exceeded_limit(text, spelled, dialect, made=True) is None
