"""Settings of a YAMI4 endpoint; data only, it imports no driver."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.endpoints.settings.base import ALL_FIELDS, TlsSettings, setting
from gateway.model.message import DeliveryMode

POLICIES = ("reject_message", "drop_update", "unsubscribe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yami4Settings:
    """A YAMI4 message broker."""

    name: str = setting("yami4", "what the endpoint is called in the configuration")
    dialect: str = setting("yami4", "the naming rules; an override tightens their limits")
    url: str = setting(
        "tcp://localhost:12345",
        "where the broker listens: tcp://host:port, tcps://host:port or unix:///path",
    )
    tls: TlsSettings | None = setting(  # noqa: RUF009  # it is frozen
        None, "how tcps:// is encrypted; absent means verified against the system's authorities"
    )
    overflow_policy: str = setting(
        "reject_message",
        "what the broker is configured to do when a subscriber's queue is full; with any but"
        " `reject_message` a confirmation does not mean that the message was passed on",
        choices=POLICIES,
    )
    window: int = setting(
        128,
        "messages under way to the broker; the reference broker gains nothing above",
        minimum=1,
        maximum=65_536,
    )
    rate: float = setting(
        0.0,
        "messages a second at most, 0 for no limit; the reference broker deadlocks when flooded"
        " with three subscribers or more",
        minimum=0,
    )
    max_message: int = setting(
        16_777_216, "bytes of the longest message, both ways; past it one is rejected", minimum=4096
    )
    unsettled_bytes: int = setting(
        67_108_864,
        "bytes a source handed out that are not settled; above it reads no more",
        minimum=65_536,
    )
    probe: bool = setting(
        default=True,
        doc="publish to a tag of our own to see that the subscription exists; the reference broker"
        " answers OK when its table is full",
    )
    heartbeat: float = setting(
        15.0, "seconds between questions to a silent broker, which TCP cannot ask", minimum=0.05
    )
    connect_timeout: float = setting(10.0, "seconds for the connection", minimum=0.1)
    answer_timeout: float = setting(
        10.0, "seconds after which an unanswered request declares the broker stuck", minimum=0.05
    )
    drain_timeout: float = setting(
        1.0,
        "seconds a closing sink reads outstanding answers; unread ones lose messages",
        minimum=0,
    )
    backoff_min: float = setting(0.5, "seconds before the first new attempt", minimum=0.01)
    backoff_max: float = setting(30.0, "seconds between attempts at most", minimum=0.01)

    @property
    def broker_key(self) -> str:
        """What two endpoints of one broker have in common."""
        return self.url

    @property
    def carries(self) -> frozenset[str]:
        """The fields of `Headers` that survive the way over this system and back."""
        return ALL_FIELDS

    @property
    def mode(self) -> DeliveryMode:
        """The best this endpoint promises; overflow decides what a confirmation is worth."""
        if self.overflow_policy == "reject_message":
            return DeliveryMode.AT_LEAST_ONCE
        return DeliveryMode.AT_MOST_ONCE
