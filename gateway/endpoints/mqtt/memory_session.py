"""A session of its own at a target's broker, which shows whether the broker began empty.

Measured with mosquitto 2.0.11 and RabbitMQ 3.10.8: a broker with its database has the session after
a restart and a kill, with what it retained; one without has neither. A clean session never tells.
RabbitMQ keeps a session only with a subscription of QoS 1: its queue. The session is made when the
retained messages are restored: a gateway that ends before restores again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from gateway.endpoints.mqtt.connection import ConnectionOwner, MqttConnection
from gateway.endpoints.mqtt.subscription_state import RequestedSubscription
from gateway.endpoints.settings.base import U32
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError
from gateway.wire.mqtt.packets import DecodedPackets


class MemorySession(ConnectionOwner):
    """The session: subscribed to its own client id, and connected for a moment only.

    A broker that refuses the subscription has the session nevertheless, except RabbitMQ.
    """

    def __init__(self, settings: MqttSettings, client_id: str) -> None:
        self._settings = replace(settings, session_expiry=U32, qos=1)
        self._client_id = f"{client_id}-restore"

    def is_present(self) -> bool:
        """Return whether the broker has the session; make none.

        Raises:
            EndpointError: the broker refuses it, or does not answer.
        """
        present = self._connect(clean=False)
        if not present:
            self._connect(clean=True)
        return present

    def make(self) -> None:
        """Make the session. Never raises: without it, the next connection restores again."""
        with suppress(GatewayError):
            self._connect(clean=False, wanted=[(re.sub(r"[^\w-]", "-", self._client_id), 1)])

    def _connect(self, *, clean: bool, wanted: Sequence[RequestedSubscription] = ()) -> bool:
        connection = MqttConnection(self._settings, self._client_id, clean=clean, owner=self)
        connection.open(lambda _present: wanted)
        present = connection.session.present
        connection.close()
        return present

    def packets_received(self, packets: DecodedPackets) -> None:
        del packets

    def connection_lost(self, failure: GatewayError) -> None:
        del failure
