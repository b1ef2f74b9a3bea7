"""Settings of a YAMI4 endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gateway.endpoints.settings.base import (
    ALL_FIELDS,
    EndpointSettings,
    SettingFault,
    TlsSettings,
    address_faults,
    server_key,
)
from gateway.model.message import DeliveryMode
from gateway.setting import choice, optional, seconds, setting, size, timeout, window_bytes

_URL = re.compile(r"tcps?://[^/\s]+:[0-9]+|unix:///[^\s]+")
POLICIES = ("reject_message", "drop_update", "unsubscribe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yami4Settings(EndpointSettings):
    """YAMI4 message broker."""

    carries: ClassVar[frozenset[str]] = ALL_FIELDS
    name: str = setting("name of the endpoint in the configuration", "yami4")
    dialect: str = setting("system whose naming rules the names follow", "yami4")
    url: str = setting(
        "address of the broker: tcp://host:port, tcps://host:port or unix:///path",
        "tcp://localhost:12345",
    )
    tls: TlsSettings | None = optional(
        "TLS of a tcps:// address; when absent, verified against the system's trust store"
    )
    overflow_policy: str = choice(
        "overflow policy in the broker's own configuration; with any but `reject_message` a"
        " confirmed message may not have reached its subscribers",
        *POLICIES,
    )
    send_window: int = setting(
        "messages that a sink sends ahead of the broker's answers; the reference broker is not"
        " faster above 128",
        128,
        minimum=1,
        maximum=65_536,
    )
    rate: float = setting(
        "most messages a second that the gateway sends, 0: no limit; the reference broker deadlocks"
        " when flooded with three subscribers or more",
        0.0,
        minimum=0,
    )
    max_message: int = size(
        "bytes of the longest message, received or sent; longer ones are rejected, and a received"
        " one is a dead letter without its payload",
        16_777_216,
        minimum=4096,
    )
    receive_window_bytes: int = window_bytes(
        "bytes of received and unsettled messages at which a source stops reading", 67_108_864
    )
    probe: bool = setting(
        "verify each subscription by publishing to a tag of its own; the reference broker answers"
        " OK even when its table of subscriptions is full",
        True,
    )
    heartbeat: float = seconds(
        "seconds of silence after which the broker is asked for an answer; TCP keepalive does not"
        " reveal a stuck broker",
        15.0,
        minimum=0.05,
    )
    connect_timeout: float = timeout("seconds for connecting", 10.0)
    answer_timeout: float = seconds(
        "seconds after which an unanswered request makes the connection count as stuck",
        10.0,
        minimum=0.05,
    )
    drain_timeout: float = seconds(
        "seconds for which a closing sink reads outstanding answers; closing with unread answers"
        " loses messages",
        1.0,
        minimum=0,
    )

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        form = "tcp://host:port, tcps://host:port or unix:///path"
        yield from address_faults("url", [self.url], _URL, form)

    @property
    def broker_key(self) -> str:
        """Address of the broker; equal for two endpoints of the same broker."""
        servers = server_key(self.addresses, {})
        return self.url if self.url.startswith("unix:") else f"tcp://{servers}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of the brokers; their schemes tell whether the connection is encrypted."""
        return (self.url,)

    @property
    def mode(self) -> DeliveryMode:
        """Strongest delivery mode of the endpoint; the overflow policy limits it."""
        if self.overflow_policy == "reject_message":
            return DeliveryMode.AT_LEAST_ONCE
        return DeliveryMode.AT_MOST_ONCE
