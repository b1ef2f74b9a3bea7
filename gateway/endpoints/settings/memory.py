"""Settings of the in-process broker; data only, no driver is imported."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.endpoints.settings.base import ALL_FIELDS, setting
from gateway.model.message import DeliveryMode


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """A broker inside this process, with the naming rules of any system."""

    name: str = setting("memory", "what the endpoint is called in the configuration")
    dialect: str = setting("mqtt", "the system whose naming rules the broker follows")
    broker: str = setting("default", "which of the process's brokers; made at first use")
    capacity: int = setting(
        67_108_864, "bytes each subscriber's queue holds; a full one slows senders", minimum=1
    )
    durable: bool = setting(
        default=True, doc="the queue outlives a closed source and goes on collecting"
    )
    headers: bool = setting(
        default=True, doc="carry all headers; off: only what MQTT 3.1.1 has room for"
    )
    backoff_min: float = setting(0.5, "seconds before the first new attempt", minimum=0.01)
    backoff_max: float = setting(30.0, "seconds between attempts at most", minimum=0.01)

    @property
    def broker_key(self) -> str:
        """What two endpoints of one broker have in common."""
        return f"memory:{self.broker}"

    @property
    def carries(self) -> frozenset[str]:
        """The fields of `Headers` that survive: nothing is encoded, so all can."""
        return ALL_FIELDS if self.headers else frozenset({"mode", "retained"})

    @property
    def mode(self) -> DeliveryMode:
        """The best this endpoint promises."""
        return DeliveryMode.EXACTLY_ONCE
