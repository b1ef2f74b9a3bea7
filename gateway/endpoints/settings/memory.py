"""Settings of an endpoint at an in-process broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.endpoints.settings.base import ALL_FIELDS, EndpointSettings
from gateway.model.message import DeliveryMode
from gateway.setting import setting, size


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings(EndpointSettings):
    """In-process broker for trials and tests; its messages are lost when the process ends."""

    addresses: ClassVar[tuple[str, ...]] = ()
    mode: ClassVar[DeliveryMode] = DeliveryMode.EXACTLY_ONCE
    name: str = setting("name of the endpoint in the configuration", "memory")
    dialect: str = setting("system whose naming rules the broker follows", "mqtt")
    broker: str = setting(
        "name of the broker; endpoints of one process with the same name and dialect share it",
        "default",
    )
    capacity: int = size(
        "bytes in the queue of each subscriber; a full queue slows its senders",
        67_108_864,
        minimum=1,
    )
    durable: bool = setting("keep the queue of a closed source, and go on filling it", True)
    headers: bool = setting("carry all headers; false: only the headers of MQTT 3.1.1", True)

    @property
    def broker_key(self) -> str:
        """Address of the broker; equal for two endpoints of the same broker."""
        return f"memory:{self.dialect}:{self.broker}"

    @property
    def carries(self) -> frozenset[str]:
        """Fields of `Headers` that survive a round trip: nothing is encoded, so all can."""
        return ALL_FIELDS if self.headers else frozenset({"mode", "retained"})
