"""A second connection to a broker that seems to give the client id of the first to another client.

MQTT 3.1.1 has no reason for the end of a connection. A broker that ends one of two connections
acts on that client; a network, or a broker that stops, ends both.
"""

from __future__ import annotations

import threading
from typing import Final, Self

from gateway.endpoints.mqtt.connection import ConnectionOwner, MqttConnection
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError, NotConnectedError
from gateway.wire.mqtt.packets import DecodedPackets

SETTLED: Final = 1.0  # seconds in which a network ends all of its connections


class Witness(ConnectionOwner):
    """The connection: a clean session without subscriptions.

    It is opened before the connection beside it, so that a limit of their age ends it first.
    Mutable: owned by the source; its connection's thread calls it.
    """

    def __init__(self, settings: MqttSettings, client_id: str) -> None:
        self._lost, self._answered = threading.Event(), threading.Event()
        self._timeout = settings.connect_timeout
        self._connection = MqttConnection(settings, f"{client_id}-witness", clean=True, owner=self)

    @classmethod
    def opened(cls, settings: MqttSettings, client_id: str) -> Self | None:
        """Return an open witness; None when the broker does not take it."""
        witness = cls(settings, client_id)
        try:
            witness._connection.open(lambda _present: ())
        except GatewayError:
            return None
        return witness

    def outlives(self) -> bool:
        """Return whether the broker still answers after the other connection has ended."""
        if self._lost.wait(SETTLED):
            return False
        self._answered.clear()
        try:
            self._connection.ping()
        except NotConnectedError:
            return False
        return self._answered.wait(self._timeout) and not self._lost.is_set()

    def close(self) -> None:
        self._connection.close()

    def packets_received(self, packets: DecodedPackets) -> None:
        """Take a PINGRESP: any bytes of the broker are an answer."""
        del packets
        self._answered.set()

    def connection_lost(self, failure: GatewayError) -> None:
        del failure
        self._lost.set()
        self._answered.set()
