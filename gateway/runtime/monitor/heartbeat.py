"""Signs of life through a route: sent to its source, taken by it, delivered to its targets.

A route can be connected at both ends and carry nothing: a session without its subscription, a
broker that accepts and forgets. Only a message that made the whole way shows that it works.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from gateway.model.message import DeliveryMode, Headers, Message, Payload


class Pulse:
    """The heartbeat of one route; mutable, it knows when it was last felt.

    Times are seconds of the monotonic clock. Ages count from the start until the first beat.
    """

    def __init__(self, gateway: str, route: str, endpoint: str, name: str) -> None:
        self.route = route
        self.endpoint = endpoint  # the source of the route, to which it is sent
        self.name = name
        self.healthy: Callable[[], bool] = lambda: True  # whether its targets are there
        self._mark = f"gateway-heartbeat {gateway}/{route} "
        self._sent = 0
        self._arrived = self._landed = self.acted = monotonic()

    def message(self) -> Message:
        """The next beat."""
        self._sent += 1
        headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
        return Message(self.name, f"{self._mark}{self._sent}".encode(), headers)

    def is_ours(self, payload: Payload) -> bool:
        text = payload if isinstance(payload, str) else None
        if isinstance(payload, bytes):
            text = payload.decode("utf-8", "replace")
        return text is not None and text.startswith(self._mark)

    def arrived(self) -> None:
        """It has come in at the source."""
        self._arrived = monotonic()

    def landed(self) -> None:
        """All targets have it; one whose target is away is only on disk, and proves nothing."""
        if self.healthy():
            self._landed = monotonic()

    @property
    def age(self) -> float:
        """Seconds since a beat went all the way."""
        return monotonic() - self._landed

    @property
    def source_age(self) -> float:
        """Seconds since a beat came in."""
        return monotonic() - self._arrived
