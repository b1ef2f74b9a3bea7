"""The session that a source left at its broker: its end.

No broker tells how many messages a session holds, and a look would take it over.
"""

from __future__ import annotations

from dataclasses import replace

from gateway.endpoints.made import UNKNOWN, Held, Made
from gateway.endpoints.mqtt.connection import ConnectionOwner, MqttConnection
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError, NotConnectedError
from gateway.wire.mqtt.packets import DecodedPackets


def count_held(settings: MqttSettings, made: Made) -> Held:
    """Ask nothing: MQTT has no question about a session."""
    del settings, made
    return UNKNOWN


def end_made(settings: MqttSettings, made: Made) -> None:
    """End the session: a clean one of its client id replaces it (MQTT 5.0, 3.1.2.4)."""
    failures: list[str] = []
    for each in replace(settings, session_expiry=0).each_address:
        if not settings.cluster and made.broker not in {each.broker_key, settings.broker_key}:
            continue
        connection = MqttConnection(each, made.name, clean=True, owner=_Nobody())
        try:
            connection.open(lambda _present: ())
        except NotConnectedError as error:  # another address of a cluster has the session, too
            failures.append(str(error))
        else:
            connection.close()
            return
    raise NotConnectedError("; ".join(failures))


class _Nobody(ConnectionOwner):
    """The owner of a connection that receives nothing."""

    def packets_received(self, packets: DecodedPackets) -> None:
        del packets

    def connection_lost(self, failure: GatewayError) -> None:
        del failure
