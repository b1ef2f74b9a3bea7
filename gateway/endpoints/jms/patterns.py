"""Which names a pattern of EMS selects: `*` is one element, `>` at the end one or more.

The server selects; this says what of it was not meant, as ActiveMQ gives `foo` to `foo.>`, and
which of two overlapping subscriptions a message belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.jms.names import ADVISORY, QUEUE

ANY, MANY = "*", ">"
_MOST_KEPT = 16_384


def selects(pattern: str, name: str) -> bool:
    """Whether EMS would deliver `name` to a subscriber of `pattern` (EMS Guide, "Wildcards")."""
    wanted, elements = pattern.split("."), name.split(".")
    if name.startswith("$") and wanted[0] in (ANY, MANY):
        return False  # the server's own names
    if wanted[-1] == MANY:
        wanted = wanted[:-1]
        if len(elements) <= len(wanted):
            return False
        elements = elements[: len(wanted)]
    return len(wanted) == len(elements) and all(
        one in (ANY, each) for one, each in zip(wanted, elements, strict=True)
    )


def has_wildcard(pattern: str) -> bool:
    return not {ANY, MANY}.isdisjoint(pattern.split("."))


class Screen:
    """Decides which received messages are wanted; mutable, since it remembers names.

    Without `dotted` the names follow other rules than EMS's, and the server's choice stands.
    """

    def __init__(self, subscriptions: Sequence[tuple[int, str]], *, dotted: bool = True) -> None:
        self._subscriptions = subscriptions
        self._dotted = dotted
        self._known: dict[tuple[int, int, str], bool] = {}

    def wants(self, consumer: int, kind: int, name: str) -> bool:
        """Whether `name` is meant for that consumer, and for none before it."""
        key = (consumer, kind, name)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            found = self._known[key] = self._decide(consumer, kind, name)
        return found

    def _decide(self, consumer: int, kind: int, name: str) -> bool:
        own_kind, pattern = self._subscriptions[consumer]
        if QUEUE in (kind, own_kind):
            return True  # each message of a queue comes once
        if name.startswith(ADVISORY) and not pattern.startswith(ADVISORY):
            return False
        if not self._dotted:
            return True
        earlier = (each for each_kind, each in self._subscriptions[:consumer] if each_kind != QUEUE)
        return (not has_wildcard(pattern) or selects(pattern, name)) and not any(
            selects(each, name) for each in earlier
        )
