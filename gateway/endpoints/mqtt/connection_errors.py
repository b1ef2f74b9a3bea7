"""The errors of one MQTT connection: its address, the cause, and a hint at the remedy."""

from __future__ import annotations

import ssl

from gateway.endpoints.mqtt.client_id import MAX_CLOSES, ClosedConnections
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.tls import encryption_hint
from gateway.errors import (
    ClientIdDisputeError,
    ClosedByBrokerError,
    EndpointError,
    GatewayError,
    NotConnectedError,
)
from gateway.wire.mqtt.reasons import ANOTHER_CLIENT, GIVE_OWN_IDS


class ConnectionErrors:
    """Makes the errors of one connection, and counts its ends in `closed`."""

    def __init__(self, settings: MqttSettings, client_id: str, closed: ClosedConnections) -> None:
        self._settings, self._client_id, self._closed = settings, client_id, closed
        self.label = f"{settings.name}: {settings.address}"

    def note(self, failure: GatewayError) -> None:
        """Count the end of the connection unless the broker closed it."""
        if not isinstance(failure, ClosedByBrokerError):
            self._closed.ended_otherwise()

    def not_connected(self, reason: object) -> NotConnectedError:
        return NotConnectedError(f"{self.label}: {reason}")

    def no_answer(self, request: str) -> NotConnectedError:
        return self.not_connected(f"no answer to {request} in time")

    def broken(self, reason: object, *, connected: bool) -> NotConnectedError:
        """Return the error of bytes or a socket that fail; `connected` is after the log-in."""
        return self.not_connected(f"{reason}{'' if connected else self._hint()}")

    def closed_by_broker(self, *, connected: bool) -> ClosedByBrokerError:
        """Return the error of an end without a reason, and count it after the log-in."""
        text = f"{self.label}: the broker closed the connection of client {self._client_id!r}"
        if connected and self._closed.closed():
            text += f" {MAX_CLOSES} times in a row: perhaps {ANOTHER_CLIENT}; {GIVE_OWN_IDS}"
            return ClientIdDisputeError(text)
        return ClosedByBrokerError(text if connected else text + self._hint())

    def of_socket(self, error: OSError, *, connected: bool) -> GatewayError:
        """Return the error of the socket; a failed TLS handshake is permanent."""
        if isinstance(error, ssl.SSLError) and not connected:
            hint = "; check the certificates"
            if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):  # perhaps an accident
                text = f"the connection ended during the TLS handshake: {error}"
                return self.not_connected(text + (hint if self._closed.handshake_ended() else ""))
            return EndpointError(f"{self.label}: TLS: {error}{hint}")
        return self.broken(error, connected=connected)

    def _hint(self) -> str:
        return encryption_hint(self._settings)
