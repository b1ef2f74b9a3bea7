"""The heartbeat of a route: a message sent to its source that must reach all its targets.

A route can be connected at both ends and carry no messages, for example when a session has lost
its subscription. Only a message that passed the whole route shows that it works.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from gateway.model.message import DeliveryMode, Headers, Message, Payload


class Heartbeat:
    """The heartbeat of one route, with the times it was last received and delivered.

    Ages count from the start until the first heartbeat.
    Mutable: written by the pump, the lanes and the watchdog; every write is one assignment.
    Units: seconds of the monotonic clock.
    """

    def __init__(self, gateway: str, route: str, endpoint: str, name: str) -> None:
        self.route = route
        self.endpoint = endpoint  # the source of the route; heartbeats are sent to it
        self.name = name
        self.targets_ready: Callable[[], bool] = lambda: True
        self._prefix = f"gateway-heartbeat {gateway}/{route} "
        self._sent = 0
        self._received_at = self._delivered_at = self.acted_at = monotonic()

    def next_message(self) -> Message:
        """Create the next heartbeat."""
        self._sent += 1
        headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
        return Message(self.name, f"{self._prefix}{self._sent}".encode(), headers)

    def is_ours(self, payload: Payload) -> bool:
        """Return whether `payload` is a heartbeat of this gateway and route."""
        text = payload if isinstance(payload, str) else None
        if isinstance(payload, bytes):
            text = payload.decode("utf-8", "replace")
        return text is not None and text.startswith(self._prefix)

    def note_received(self) -> None:
        """Note that a heartbeat was received from the source."""
        self._received_at = monotonic()

    def note_delivered(self) -> None:
        """Note that a heartbeat was settled; a spooled one does not count as delivered."""
        if self.targets_ready():
            self._delivered_at = monotonic()

    @property
    def age(self) -> float:
        """Seconds since a heartbeat was delivered to all targets."""
        return monotonic() - self._delivered_at

    @property
    def source_age(self) -> float:
        """Seconds since a heartbeat was received."""
        return monotonic() - self._received_at
