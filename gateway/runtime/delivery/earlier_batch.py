"""A received batch as later ones see it that may have its messages again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class ConnectionPart(NamedTuple):
    """A connection of a source, before or after its first silence.

    A broker delivers again first, so that after a silence nothing comes from earlier connections.
    """

    number: int = 0
    after_silence: bool = False


class EarlierBatch(Protocol):
    """A batch whose messages may be repeated. Units: seconds of a monotonic clock."""

    @property
    def arrived(self) -> float:
        """The time of its receipt."""

    @property
    def part(self) -> ConnectionPart:
        """The part of a connection that brought it."""

    def is_over_for(self, later: EarlierBatch) -> bool:
        """Whether it does not come again over the connection of `later`.

        It was settled over the same one, or `later` came after a silence.
        """

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the batch is settled, or now if it is."""
