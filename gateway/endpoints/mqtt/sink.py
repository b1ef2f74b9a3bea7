"""The sending side of MQTT: one connection over which batches are published."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Settle
from gateway.endpoints.mqtt.client_id import ClosedConnections
from gateway.endpoints.mqtt.connection import MqttConnection
from gateway.endpoints.mqtt.publish_state import PublishState
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import NotConnectedError
from gateway.model.message import Message


class MqttSink:
    """Publishes to one broker.

    Mutable: open or closed; any thread may send and close.
    """

    def __init__(self, settings: MqttSettings, client_id: str) -> None:
        self._settings, self._client_id = settings, client_id
        self._closed = ClosedConnections()
        self._state: PublishState | None = None
        self._connection: MqttConnection | None = None

    def open(self) -> None:
        if self._connection is not None and self._connection.failure is None:
            return
        self.close()
        state = PublishState(self._settings)
        connection = MqttConnection(
            self._settings, self._client_id, clean=True, owner=state, closed=self._closed
        )
        connection.open(lambda _session_present: ())
        state.use(connection)
        self._state, self._connection = state, connection

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        state, connection = self._state, self._connection
        if state is None or connection is None:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        if connection.failure is not None:
            raise connection.failure
        state.send(connection, messages, settled)

    def close(self) -> None:
        connection, self._connection, self._state = self._connection, None, None
        if connection is not None:
            connection.close()
