"""Batches whose settlements no broker learns of: their rows may be joined."""

from __future__ import annotations

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.mqtt.kept_session import KeptSession
from gateway.endpoints.mqtt.receive_state import ReceiveState
from gateway.endpoints.nats.core_reader import CoreReader
from gateway.endpoints.receipts import ReceivedMessage
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.message import Message

MESSAGE = Message("t", b"x")


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_nobody_awaits_a_batch_of_mqtt_at_qos_0(qos: int) -> None:
    settings = MqttSettings(qos=qos)
    queue = ReceiveState(settings, [Subscription("t")], KeptSession()).queue
    queue.put([MESSAGE])

    batch = queue.take(1, 0)

    assert batch is not None
    assert batch.awaited is (qos > 0)


def test_nobody_awaits_a_batch_of_nats_without_a_stream() -> None:
    queue = CoreReader(NatsSettings(), ["t"], Continuity(Retention.NOTHING)).queue
    queue.put([ReceivedMessage(MESSAGE, "")])

    batch = queue.receive(0)

    assert batch is not None
    assert not batch.awaited
