"""Short names: names too long for a system, cut at a level and ended by a digest.

A short name ends in `~` and 26 letters and digits, 128 bits of BLAKE2b over the whole name. A
dictionary of short names maps it back. Where names are shortened, an original name of this form
gets one more `~`, so it never equals a short name.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, Protocol

from gateway.dialects.dialect import Dialect
from gateway.dialects.name_size import exceeded_limit
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import UNKNOWN_DIGEST
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import texts_size

MAX_SIZE: Final = 64 << 20  # bytes of the names in memory
_FEW: Final = 32  # levels
DIGEST = re.compile(r"~[a-z2-7]{26}")
LOOKS_SHORTENED = re.compile(r"~+[a-z2-7]{26}")


class ShortNames(Protocol):
    """A dictionary of short names; the one of the runtime is persistent."""

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        """Add the canonical levels behind `digest`; repeated calls are allowed."""

    def recall(self, digest: str) -> tuple[str, ...] | None:
        """Return the canonical levels behind `digest`, or None."""

    def commit(self) -> None:
        """Make all names durable that were added; short names are used only after it.

        Raises:
            ArchiveError: they cannot be stored now; another call is allowed.
        """


class ShortNamesInMemory:
    """A dictionary of short names in memory, until it gets a persistent one behind it.

    It drops a quarter of them at MAX_SIZE bytes: only a gateway without archive keeps its names
    here. With a persistent dictionary behind it, it keeps no names itself.
    Mutable: shared by the translators of a gateway.
    """

    def __init__(self) -> None:
        self._names: LimitedCache[str, tuple[str, ...]] = LimitedCache(MAX_SIZE)
        self._store: ShortNames | None = None

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        if self._store is not None:
            self._store.remember(digest, levels)
        elif digest not in self._names:
            self._names.add(digest, levels, texts_size(levels))

    def recall(self, digest: str) -> tuple[str, ...] | None:
        return self._names.get(digest) if self._store is None else self._store.recall(digest)

    def commit(self) -> None:
        if self._store is not None:
            self._store.commit()

    def move_to(self, store: ShortNames) -> None:
        """Give the names to `store`, which has every name from now on.

        Raises:
            ArchiveError: they cannot be stored.
        """
        for digest, levels in self._names.items():
            store.remember(digest, levels)
        store.commit()
        self._store = store
        self._names.clear()

    def take_over(self, earlier: ShortNamesInMemory) -> None:
        """Use the persistent dictionary of `earlier`, or else its names."""
        if earlier._store is not None:
            self.move_to(earlier._store)
        else:
            for digest, levels in list(earlier._names.items()):
                self.remember(digest, levels)


def digest_of(levels: Sequence[str]) -> str:
    """Return the level that stands for the whole name with these canonical `levels`."""
    text = "\0".join(levels)
    if len(levels) > _FEW and text.count("\0") == len(levels) - 1:
        whole = "\0" + text  # a tenth of the work
    else:
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
            raise TranslationError(dialect.name, text, UNKNOWN_DIGEST, reason)
        return found
    if LOOKS_SHORTENED.fullmatch(last):
        return (*levels[:-1], last[1:])
    return levels


def _fits(spelled: Sequence[str], dialect: Dialect) -> bool:
    text = dialect.text_of(spelled)
    return exceeded_limit(text, spelled, dialect, made=True) is None
