"""The client id of a connection, and signs that another client uses the same one."""

from __future__ import annotations

from time import monotonic
from typing import Final

from gateway.endpoints.settings.mqtt import MqttSettings

SHORT_CONNECTION: Final = 30.0  # seconds; the backoff of a client in a dispute is shorter
MAX_CLOSES: Final = 3  # short connections in a row that the broker closed, as in a dispute


def client_id(settings: MqttSettings, instance: str, suffix: str = "") -> str:
    """Return the client id of a source or sink."""
    base = settings.client_id or f"gateway-{settings.name}"
    return (f"{base}-{instance}" if instance else base) + suffix


class ClosedConnections:
    """Counts short connections in a row that the broker closed without a reason.

    MQTT 3.1.1 has no reason for the end of a client whose id another client uses (3.1.4).
    Mutable: owned by the source or sink, which has one connection at a time.
    """

    def __init__(self) -> None:
        self._logged_in_at = 0.0
        self._closes = 0
        self._handshakes = 0  # of TLS, in a row, during which the connection ended

    def logged_in(self) -> None:
        self._logged_in_at = monotonic()
        self._handshakes = 0

    def handshake_ended(self) -> bool:
        """Count an end during the handshake of TLS; return whether it is not the first in a row."""
        self._handshakes += 1
        return self._handshakes > 1

    def closed(self) -> bool:
        """Count a connection that the broker closed; return whether its id seems disputed."""
        self._closes = self._closes + 1 if self.is_short else 1
        return self._closes >= MAX_CLOSES

    @property
    def is_short(self) -> bool:
        """Whether the connection would be short if it ended now."""
        return monotonic() - self._logged_in_at < SHORT_CONNECTION

    @property
    def suspicious(self) -> bool:
        """Whether the id seems disputed if the broker also closes the next connection."""
        return self._closes >= MAX_CLOSES - 1

    def ended_otherwise(self) -> None:
        self._closes = 0
