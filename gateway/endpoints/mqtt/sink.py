"""The sending side of MQTT: one connection over which batches are published."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from gateway.endpoints.base import Settle, Statement
from gateway.endpoints.mqtt.addresses import Addresses
from gateway.endpoints.mqtt.client_id import ClosedConnections, client_id
from gateway.endpoints.mqtt.connection import MqttConnection
from gateway.endpoints.mqtt.memory_session import MemorySession
from gateway.endpoints.mqtt.publish_state import PublishState
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.source_shell import not_open
from gateway.errors import EndpointError
from gateway.model.message import Message


class MqttSink:
    """Publishes to one broker.

    Mutable: open or closed; any thread may send and close.
    """

    def __init__(self, settings: MqttSettings, instance: str = "") -> None:
        self._settings = settings
        self._client_id = client_id(settings, instance, "-out")  # an id is for one connection
        self.addresses = Addresses(settings, self._client_id)
        self._closed = ClosedConnections()
        self._state: PublishState | None = None
        self.statement: Statement | None = None
        self.began_empty = False
        self._told: bool | None = None  # the last state on this connection

    @property
    def address(self) -> str:
        """HOST:PORT of the broker."""
        return self.addresses.tried

    def open(self) -> None:
        if self._state is not None and self._state.connection.failure is None:
            return
        self.close()
        self._state = self.addresses.connect(self._open)

    def _open(self, settings: MqttSettings) -> PublishState:
        if settings.restore_retained:
            self.began_empty = not MemorySession(settings, self._client_id).is_present()
        said = self.statement
        state = PublishState(settings, tells=said is not None)
        will = None if said is None else (said.name, said.down)
        state.connection = MqttConnection(
            settings, self._client_id, clean=True, owner=state, closed=self._closed, will=will
        )
        self._told = None
        state.connection.open(lambda _session_present: ())
        state.apply_limits()
        return state

    def restored(self) -> None:
        self.began_empty = False
        for each in self._settings.each_address:
            if each.address == self.address:
                MemorySession(each, self._client_id).make()

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        state = self._state
        if state is None:
            raise not_open(self._settings.name)
        if self.addresses.first_answers and state.connection.failure is None:
            self._return(state)
        if state.connection.failure is not None:
            raise state.connection.failure
        state.send(messages, settled)

    def _return(self, state: PublishState) -> None:
        """Leave for the first address, unless the answers take too long."""
        while not state.all_answered():
            if not self.addresses.leave_in_time():
                return
        self._tell(connected=False, last=True)
        state.connection.close(self.addresses.return_to_first())

    def tell(self, *, connected: bool) -> None:
        self._tell(connected=connected)

    def _tell(self, *, connected: bool, last: bool = False) -> None:
        state, said = self._state, self.statement
        if state is None or said is None or connected is self._told:
            return
        with suppress(EndpointError):  # the broker tells the will, or another client its state
            state.tell(said.name, said.up if connected else said.down, last=last)
            self._told = connected

    def close(self) -> None:
        self.addresses.close()
        self._tell(connected=False, last=True)  # a log-out takes the will back
        state, self._state = self._state, None
        if state is not None:
            state.connection.close()
