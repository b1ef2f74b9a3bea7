"""Wildcards of EMS (`*` is one element, a final `>` one or more), and a filter of received names.

The server selects by pattern. The filter drops surplus messages, as ActiveMQ delivers `foo` to
`foo.>`, and gives a message that overlapping subscriptions select to the first of them only.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.jms.addresses import ADVISORY_PREFIX, QUEUE
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size

ONE_ELEMENT, MORE_ELEMENTS = "*", ">"
MAX_REMEMBERED_SIZE = 4 << 20  # bytes of decisions


def selects(pattern: str, name: str) -> bool:
    """Return whether EMS delivers `name` to a subscriber of `pattern` (EMS Guide, "Wildcards")."""
    selected, elements = pattern.split("."), name.split(".")
    if name.startswith("$") and selected[0] in (ONE_ELEMENT, MORE_ELEMENTS):
        return False  # names of the server itself
    if selected[-1] == MORE_ELEMENTS:
        selected = selected[:-1]
        if len(elements) <= len(selected):
            return False
        elements = elements[: len(selected)]
    return len(selected) == len(elements) and all(
        one in (ONE_ELEMENT, each) for one, each in zip(selected, elements, strict=True)
    )


def has_wildcard(pattern: str) -> bool:
    return not {ONE_ELEMENT, MORE_ELEMENTS}.isdisjoint(pattern.split("."))


class SubscriptionFilter:
    """Decides which received messages a consumer passes on.

    With `ems_names` false the names follow another system's rules, and the server alone selects.
    Mutable: owned by the receiving thread; it remembers decisions.
    """

    def __init__(self, subscriptions: Sequence[tuple[int, str]], *, ems_names: bool = True) -> None:
        self._subscriptions = subscriptions
        self._ems_names = ems_names
        self._decisions = LimitedCache[tuple[int, int, str], bool](MAX_REMEMBERED_SIZE)

    def accepts(self, consumer: int, kind: int, name: str) -> bool:
        """Return whether this consumer, and none before it, subscribed to `name`."""
        key = (consumer, kind, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(consumer, kind, name)
            self._decisions.add(key, decision, text_size(name))
        return decision

    def _decide(self, consumer: int, kind: int, name: str) -> bool:
        own_kind, pattern = self._subscriptions[consumer]
        if QUEUE in (kind, own_kind):
            return True  # a queue delivers each message once
        if name.startswith(ADVISORY_PREFIX) and not pattern.startswith(ADVISORY_PREFIX):
            return False
        if not self._ems_names:
            return True
        earlier = (each for each_kind, each in self._subscriptions[:consumer] if each_kind != QUEUE)
        return (not has_wildcard(pattern) or selects(pattern, name)) and not any(
            selects(each, name) for each in earlier
        )
