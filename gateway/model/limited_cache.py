"""A cache with a limit of bytes, which is cleared when it is full."""

from __future__ import annotations

from typing import Final, TypeVar

ENTRY_OVERHEAD: Final = 250  # bytes of an entry with a small key and value, beside its texts

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

    def add(self, key: _Key, value: _Value, size: int) -> _Value:
        """Add an entry of about `size` bytes, and return it; drop all others at the limit.

        An entry above the limit alone is not added.
        """
        size += ENTRY_OVERHEAD
        self._room -= size
        if self._room < 0:
            self.clear()
            if size > self._max_size:
                return value
            self._room -= size
        self[key] = value
        return value

    def clear(self) -> None:
        super().clear()
        self._room = self._max_size
