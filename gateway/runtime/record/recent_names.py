"""The latest names of a route, before and after, while somebody looks at them.

A view: one route, and its latest messages: name at the source, and name or rule at each target.
Begun: by a question about the route. Filled: by the pumps, batch by batch, until `WATCH_SECONDS`
after the last question. Dropped: with the next batch after that time. It has no payload and no
header, and a process that ends takes it along.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.model.message import Message
from gateway.routing.router import Delivery, RouteMatch

MAX_NAMES: Final = 50  # messages of a view
WATCH_SECONDS: Final = 10.0
MAX_VIEWS: Final = 8  # routes at once; a further one takes the place of the oldest
MAX_COPIES: Final = 8  # of one message
MAX_TEXT: Final = 512  # characters of a name or a reason


@dataclass(frozen=True, slots=True)
class SeenCopy:
    """A copy: the label of its target, and the name there or the rule that refuses it."""

    target: str
    name: str
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message of a route; `time` has seconds since 1970-01-01 UTC, `more` the other copies."""

    time: float
    endpoint: str
    name: str
    copies: tuple[SeenCopy, ...]
    more: int = 0


@dataclass(slots=True)
class _View:
    until: float  # of the monotonic clock
    messages: deque[SeenMessage] = field(default_factory=lambda: deque(maxlen=MAX_NAMES))


class RecentNames:
    """The views of the routes that somebody looks at.

    A pump asks `if names.views:` once a batch, and calls `note` only then.
    Thread-safe: guarded by self._lock, except that question.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.views: dict[str, _View] = {}
        self._clock = clock
        self._lock = threading.Lock()

    def ask(self, route: str) -> list[SeenMessage]:
        """Return the messages of a route since somebody looks, newest first; watch it longer."""
        with self._lock:
            view = self.views.pop(route, None)
            if view is None or view.until < self._clock():
                view = _View(0.0)
            view.until = self._clock() + WATCH_SECONDS
            while len(self.views) >= MAX_VIEWS:
                del self.views[next(iter(self.views))]
            self.views[route] = view
            return [*reversed(view.messages)]

    def note(
        self,
        endpoint: str,
        messages: Sequence[Message],
        groups: Iterable[tuple[Sequence[int], Sequence[RouteMatch]]],
    ) -> None:
        """Note the messages of the batch that routes with a view have matched."""
        at = time.time()
        with self._lock:
            for route in [name for name, view in self.views.items() if view.until < self._clock()]:
                del self.views[route]
            for positions, matches in groups:
                for route, view in self.views.items():
                    found = [
                        (position, match)
                        for position, match in zip(positions, matches, strict=True)
                        if match.route is not None and match.route.name == route
                    ]
                    view.messages.extend(
                        _seen(at, endpoint, messages[position].address, match)
                        for position, match in found[-MAX_NAMES:]
                    )


def _seen(at: float, endpoint: str, name: str, match: RouteMatch) -> SeenMessage:
    copies = tuple(_copy(each) for each in match.deliveries[:MAX_COPIES])
    return SeenMessage(at, endpoint, _short(name), copies, len(match.deliveries) - len(copies))


def _copy(delivery: Delivery) -> SeenCopy:
    name = "" if delivery.rule else _short(delivery.address)
    return SeenCopy(delivery.label, name, str(delivery.rule), _short(delivery.reason))


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
