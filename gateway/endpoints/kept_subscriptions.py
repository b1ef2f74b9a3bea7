"""Subscriptions that a broker keeps from run to run, and the memory of them beside the gateway.

No broker lists its subscriptions. A source that starts with fewer patterns than the run before
would keep the old ones, so it must remember them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


class SubscriptionStore(Protocol):
    """Remembers subscriptions beyond the end of the process. Thread-safe; never raises."""

    def load(self, session: str, parse: Callable[[str], T]) -> Sequence[T] | None:
        """Return what was saved for a session at a broker; empty for none.

        None when the memory is damaged, or `parse` raises on a text: act as after an unclean end.
        """

    def save(self, session: str, subscriptions: Collection[str]) -> None:
        """Remember that the broker may have `subscriptions` for the session, and no others."""


@runtime_checkable
class KeepsSubscriptions(Protocol):
    """A source whose broker keeps its subscriptions; it uses the store whenever it opens."""

    subscription_store: SubscriptionStore | None
