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
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.inbound.header_mapping import HeaderMapper
from gateway.runtime.inbound.in_flight import InFlightBatch

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
                    copy = self._copy_id(received, position)
                    message = _with_ids(message, copy, received.trace(position).hex())
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

    def _copy_id(self, batch: ReceivedBatch, position: int) -> str:
        """The id of the copies of a message: from the identity of its source where it has one."""
        message = batch.messages[position]
        given = message.headers.properties.get(GATEWAY_ID)
        identity = given if isinstance(given, str) else message.headers.source_id
        if identity is None and batch.identities:
            identity = batch.identities[position]
        if not identity:
            return batch.message_id(position).hex()
        return copy_id(self._endpoint, identity, message)


def _with_ids(message: Message, copy: str, trace: str) -> Message:
    """Add the properties `gateway_id` and `gateway_trace` to a copy."""
    properties = {**message.headers.properties, GATEWAY_ID: copy, GATEWAY_TRACE: trace}
    return replace(message, headers=replace(message.headers, properties=properties))
