"""The wire formats with hostile servers; a new kind of endpoint adds its own."""

from __future__ import annotations

from typing import Final

from tests.hostile.amqp_servers import AMQP
from tests.hostile.behaviours import HostileWire
from tests.hostile.kafka_servers import KAFKA
from tests.hostile.mqtt_servers import MQTT, MQTT_3
from tests.hostile.nats_servers import NATS
from tests.hostile.openwire_servers import OPENWIRE
from tests.hostile.rabbitmq_servers import RABBITMQ
from tests.hostile.solace_servers import SOLACE
from tests.hostile.yami4_servers import YAMI4

WIRES: Final[list[HostileWire]] = [
    AMQP,
    KAFKA,
    MQTT,
    MQTT_3,
    NATS,
    OPENWIRE,
    RABBITMQ,
    SOLACE,
    YAMI4,
]
