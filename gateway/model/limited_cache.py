"""A cache with a limit of bytes, which drops a quarter of its entries when it is full.

It drops every fourth one in the order in which they were added, and not the oldest. So it keeps the
most of entries that are wanted in turn, and for which it has a little too few bytes.
"""

from __future__ import annotations

from typing import Final, TypeVar

ENTRY_OVERHEAD: Final = 250  # bytes of an entry with a small key and value, beside its texts
_SHARE: Final = 4  # each such entry is dropped

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class LimitedCache(dict[_Key, _Value]):
    """A dict whose entries take at most about `max_size` bytes.

    Mutable: owned by one thread, unless each call is guarded.
    """

    def __init__(self, max_size: int) -> None:
        super().__init__()
        self._max_size = max_size
        self._room = max_size
        self._sizes: dict[_Key, int] = {}

    def add(self, key: _Key, value: _Value, size: int) -> _Value:
        """Add an entry of about `size` bytes, and return it; drop others at the limit.

        An entry above the limit alone is not added.
        """
        size += ENTRY_OVERHEAD
        self._drop(key)
        if size > self._max_size:
            return value
        while self._room < size:
            for each in [*self._sizes][::_SHARE]:
                self._drop(each)
        self._room -= size
        self._sizes[key] = size
        self[key] = value
        return value

    def clear(self) -> None:
        super().clear()
        self._sizes.clear()
        self._room = self._max_size

    def _drop(self, key: _Key) -> None:
        self._room += self._sizes.pop(key, 0)
        self.pop(key, None)
