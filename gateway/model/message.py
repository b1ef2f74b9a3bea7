"""The message in the form that all endpoints share.

`Message` and `Headers` are immutable by convention. A frozen dataclass takes three to six times
as long to create, and the gateway creates several of them for each message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from types import MappingProxyType
from typing import Self, TypeAlias

Value: TypeAlias = "bool | int | float | str | bytes | Sequence_ | Mapping[str, Value] | None"
Sequence_: TypeAlias = "list[Value] | tuple[Value, ...]"
Payload: TypeAlias = "bytes | str | Mapping[str, Value]"
Properties: TypeAlias = Mapping[str, Value]

NO_PROPERTIES: Properties = MappingProxyType({})
UNKNOWN_SIZE = -1 << 60  # of headers; any sum with it is below zero
GATEWAY_ID = "gateway_id"  # property with the message id that a gateway assigned, in hex
GATEWAY_TRACE = "gateway_trace"  # property with the trace id: 32 hexadecimal digits
CHOSEN_PARTITION = "gateway_partition"  # property with what chooses the partition at the target
SOURCE_NAME = "gateway_name"  # property with the name at the source, in its dialect


class DroppedPayload(bytes):
    """Stands for a payload of `full` bytes that its source did not keep. It is empty itself."""

    full: int

    def __new__(cls, full: int) -> Self:
        made = super().__new__(cls)
        made.full = full
        return made


class DeliveryMode(IntEnum):
    """The delivery guarantee of one connection; a higher value guarantees more."""

    AT_MOST_ONCE = 0  # MQTT QoS 0, SMF direct, EMS NON_PERSISTENT and RELIABLE, YAMI4 publish
    AT_LEAST_ONCE = 1  # MQTT QoS 1, SMF guaranteed, EMS PERSISTENT, YAMI4 publish_confirm
    EXACTLY_ONCE = 2  # MQTT QoS 2


@dataclass(slots=True, unsafe_hash=True)
class Headers:
    """All of a message except its address and its payload.

    Most messages of a source carry equal headers, so an endpoint shares one value among them.
    `origin` lists the gateways that forwarded the message, oldest first. `size` is for
    `memory_size.headers_size`.
    Units: microseconds since 1970-01-01 UTC.
    """

    mode: DeliveryMode = DeliveryMode.AT_MOST_ONCE
    retained: bool = False
    redelivered: bool = False
    priority: int | None = None  # 0 to 9
    expiry: int | None = None  # the time at which the message expires
    time: int | None = None  # when it was sent, by the clock of its publisher
    content_type: str | None = None
    correlation_id: bytes | str | None = None
    reply_to: str | None = None  # an address in the dialect of `Message.address`
    source_id: str | None = None  # the message id that the source system assigned
    origin: tuple[str, ...] = ()
    properties: Properties = field(default_factory=lambda: NO_PROPERTIES)
    size: int = field(default=UNKNOWN_SIZE, init=False, repr=False, compare=False)

    @property
    def is_shared(self) -> bool:
        """Return whether other messages may have equal headers: without an id, caches keep them."""
        return self.source_id is None and GATEWAY_ID not in self.properties

    def with_origin(self, origin: tuple[str, ...], properties: Properties | None = None) -> Headers:
        """Return a copy with the given `origin`, and with other properties where they are given.

        `replace` would take five times as long.
        """
        return self._copy(origin, self.properties if properties is None else properties)

    def with_properties(self, properties: Properties) -> Headers:
        """Return a copy with the given properties."""
        return self._copy(self.origin, properties)

    def _copy(self, origin: tuple[str, ...], properties: Properties) -> Headers:
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
            properties,
        )


NO_HEADERS = Headers()
HEADER_FIELDS = tuple(each.name for each in fields(Headers) if each.init)


@dataclass(slots=True, unsafe_hash=True)
class Message:
    """One message; `address` is a name or a tag list in the dialect of its system.

    `proof` is the text of its `CopyProof`, as it travels beside the shared headers; empty for a
    message that no gateway sent. Two copies of one message are equal, whatever their proofs.
    """

    address: str
    payload: Payload
    headers: Headers = NO_HEADERS
    proof: str = field(default="", compare=False)


def identity_of(headers: Headers, number: str = "") -> str | None:
    """Return the unique id of the message, or None when it has none.

    The id that a gateway assigned comes first: it is the same on every path. Then comes the
    `number` that the broker gave the message, which no publisher chooses, and then its own id.
    """
    assigned = headers.properties.get(GATEWAY_ID) if headers.properties else None
    return assigned if isinstance(assigned, str) else number or headers.source_id
