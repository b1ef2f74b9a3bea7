"""The copies of a received batch for one target: headers, payload and identity."""

from __future__ import annotations

import logging
from dataclasses import replace

from gateway.errors import TranslationError
from gateway.model.message import GATEWAY_ID, GATEWAY_TRACE, Message
from gateway.routing.payload_conversion import convert_payload
from gateway.routing.route import WhenFull
from gateway.routing.router import Delivery
from gateway.runtime.delivery.distribution import Copies
from gateway.runtime.delivery.duplicates import copy_id
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.inbound.header_mapping import HeaderMapper
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.tracing.context import trace_of

log = logging.getLogger(__name__)


class CopyMaker:
    """Makes the copies of the messages of one source endpoint.

    Mutable: owned by the pump's thread.
    """

    def __init__(self, endpoint: str, header_mapper: HeaderMapper) -> None:
        self._endpoint = endpoint
        self._map_headers = header_mapper.map_headers

    def make(
        self, in_flight: InFlightBatch, copies: Copies, when_full: WhenFull, carries: frozenset[str]
    ) -> OutboundBatch:
        """Make the messages of `copies`; `in_flight` records those that are refused.

        `carries` has the header fields that the target carries.
        """
        received, map_headers = in_flight.received, self._map_headers
        positions: list[int] = []
        deliveries: list[Delivery] = []
        messages: list[Message] = []
        for position, delivery in zip(*copies, strict=True):
            original, target = received.messages[position], delivery.target
            try:
                headers = map_headers(original.headers, delivery, carries)
                payload = original.payload
                if target is not None and target.conversion is not None:
                    payload = convert_payload(payload, target.conversion)
                message = Message(delivery.address, payload, headers)
                if target is not None and target.add_message_id:
                    number = received.identities[position] if received.identities else ""
                    own = received.message_id(position)
                    message = with_ids(message, original, self._endpoint, own, number)
            except TranslationError as error:
                in_flight.refuse(position, replace(delivery, rule=error.rule, reason=str(error)))
                continue
            except Exception as error:
                log.exception(
                    "internal error while translating", extra={"endpoint": self._endpoint}
                )
                reason = f"{type(error).__name__} while translating; this is a fault of the gateway"
                in_flight.refuse(position, replace(delivery, rule="internal", reason=reason))
                continue
            positions.append(position)
            deliveries.append(delivery)
            messages.append(message)
        return OutboundBatch(in_flight, when_full, messages, positions, deliveries)


def with_ids(  # noqa: PLR0913, PLR0917  # a copy, and all that its ids follow from
    copy: Message,
    received: Message,
    endpoint: str,
    message_id: bytes,
    number: str = "",
    trace: bytes | None = None,
) -> Message:
    """Add the properties `gateway_id` and `gateway_trace` to a copy of a received message.

    Its id follows from the identity that its source `endpoint` gave the message, or from the
    `number` that the broker gave it; without one it is the `message_id` of the gateway. `trace` is
    that of the archive, where it is known.
    """
    given = received.headers.properties.get(GATEWAY_ID)
    identity = (given if isinstance(given, str) else received.headers.source_id) or number
    own = copy_id(endpoint, identity, received) if identity else message_id.hex()
    trace = trace or trace_of(received.headers.properties) or message_id
    properties = {**copy.headers.properties, GATEWAY_ID: own, GATEWAY_TRACE: trace.hex()}
    return replace(copy, headers=replace(copy.headers, properties=properties))
