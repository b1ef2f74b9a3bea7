"""The one message every system's messages become and are made from; it knows no system.

Nobody changes a message or its headers, though the interpreter would let them: a frozen value
takes three to six times as long to make, and some of these are made for each that crosses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import TypeAlias

Value: TypeAlias = "bool | int | float | str | bytes | Sequence_ | Mapping[str, Value] | None"
Sequence_: TypeAlias = "list[Value] | tuple[Value, ...]"
Payload: TypeAlias = "bytes | str | Mapping[str, Value]"
Properties: TypeAlias = Mapping[str, Value]

NO_PROPERTIES: Properties = MappingProxyType({})
GATEWAY_ID = "gateway_id"  # property that carries the id a gateway gave the message, in hex


class DeliveryMode(IntEnum):
    """What a hop promises; a higher value promises more."""

    AT_MOST_ONCE = 0  # MQTT QoS 0, SMF direct, EMS NON_PERSISTENT and RELIABLE, YAMI4 publish
    AT_LEAST_ONCE = 1  # MQTT QoS 1, SMF guaranteed, EMS PERSISTENT, YAMI4 publish_confirm
    EXACTLY_ONCE = 2  # MQTT QoS 2


@dataclass(slots=True, unsafe_hash=True)
class Headers:
    """All of a message but its address and its payload.

    Most messages of a source carry equal headers, so endpoints share one value among them.
    Times are microseconds since 1970-01-01 UTC. `origin` lists the gateways passed, oldest first.
    """

    mode: DeliveryMode = DeliveryMode.AT_MOST_ONCE
    retained: bool = False
    redelivered: bool = False
    priority: int | None = None  # 0 to 9
    expiry: int | None = None  # the moment it becomes worthless
    time: int | None = None  # when its publisher says it was sent
    content_type: str | None = None
    correlation_id: bytes | str | None = None
    reply_to: str | None = None  # an address in the dialect of `Message.address`
    source_id: str | None = None  # the identity the source system gave it
    origin: tuple[str, ...] = ()
    properties: Properties = field(default_factory=lambda: NO_PROPERTIES)

    def with_origin(self, origin: tuple[str, ...]) -> Headers:
        """These headers with the path `origin`; `replace` would take five times as long."""
        return Headers(
            self.mode,
            self.retained,
            self.redelivered,
            self.priority,
            self.expiry,
            self.time,
            self.content_type,
            self.correlation_id,
            self.reply_to,
            self.source_id,
            origin,
            self.properties,
        )


PLAIN = Headers()


@dataclass(slots=True, unsafe_hash=True)
class Message:
    """One message; `address` is a subject or a tag list in the dialect of the system it is for."""

    address: str
    payload: Payload
    headers: Headers = PLAIN


def identity_of(headers: Headers) -> str | None:
    """What tells this message from every other, where anything does.

    What a gateway gave it counts over what a broker did: it is the same on every way.
    """
    given = headers.properties.get(GATEWAY_ID) if headers.properties else None
    return given if isinstance(given, str) else headers.source_id
