"""The errors of one MQTT connection: its address, the cause, and a hint at the remedy."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

from gateway.endpoints.mqtt.client_id import MAX_CLOSES, ClosedConnections
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.tls import certificate_hint, encryption_hint
from gateway.errors import (
    ClientIdDisputeError,
    ClosedByBrokerError,
    EndpointError,
    GatewayError,
    NotConnectedError,
)
from gateway.wire.mqtt.reasons import ANOTHER_CLIENT, GIVE_OWN_IDS

_ENDS: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, TimeoutError, ConnectionError)


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
        return self.not_connected(f"{reason}{'' if connected else encryption_hint(self._settings)}")

    def closed_by_broker(self, said: str, *, connected: bool) -> ClosedByBrokerError:
        """Return the error of an end without a reason of MQTT, and count it after the log-in.

        `said` is what the transport says about it, or empty.
        """
        text = f"{self.label}: the broker closed the connection of client {self._client_id!r}"
        text += f" ({said})" if said else ""
        if connected and self._closed.closed():
            text += f" {MAX_CLOSES} times in a row: perhaps {ANOTHER_CLIENT}; {GIVE_OWN_IDS}"
            return ClientIdDisputeError(text)
        return ClosedByBrokerError(text if connected else text + encryption_hint(self._settings))

    def of_socket(self, error: OSError, *, connected: bool) -> GatewayError:
        """Return the error of the socket; `connected` is after the log-in."""
        if isinstance(error, ssl.SSLError) and not connected:  # the broker refuses the handshake
            return self.of_handshake(error, lambda: certificate_hint(error, self._settings.tls))
        return self.broken(error, connected=connected)

    def of_handshake(self, error: Exception, find_hint: Callable[[], str]) -> GatewayError:
        """Return the error of a failed TLS handshake, which is permanent unless it just ended.

        The first such end in a row may be an accident, and is not worth a hint.
        """
        if isinstance(error, _ENDS):
            hint = find_hint() if self._closed.handshake_ended() else ""
            reason = f"the connection ended during the TLS handshake: {error}{hint}"
            return self.not_connected(reason)
        hint = find_hint() or certificate_hint(error, self._settings.tls)
        return EndpointError(f"{self.label}: TLS: {error}{hint}")
