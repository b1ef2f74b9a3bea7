"""The copies of a received batch for one target: headers, payload and identity."""

from __future__ import annotations

import logging
from dataclasses import replace

from gateway.endpoints.base import Batch
from gateway.errors import TranslationError
from gateway.model.message import GATEWAY_ID, GATEWAY_TRACE, Message
from gateway.routing.payload_conversion import convert_payload
from gateway.runtime.delivery.duplicates import copy_id
from gateway.runtime.delivery.in_flight import LaneBatch
from gateway.runtime.inbound.header_mapping import HeaderMapper
from gateway.runtime.inbound.in_flight import SharedBatch

log = logging.getLogger(__name__)


class CopyMaker:
    """Makes the copies of the messages of one source endpoint.

    Mutable: owned by the pump's thread.
    """

    def __init__(self, endpoint: str, header_mapper: HeaderMapper) -> None:
        self._endpoint = endpoint
        self._map_headers = header_mapper.map_headers

    def make(
        self, batch: Batch, in_flight: SharedBatch, routed: LaneBatch, carries: frozenset[str]
    ) -> LaneBatch:
        """Return the copies of the `routed` entries; `in_flight` records those refused.

        `carries` has the header fields that the target carries.
        """
        made, map_headers = LaneBatch(), self._map_headers
        for position, delivery in routed.entries():
            received, target = batch.messages[position], delivery.target
            try:
                headers = map_headers(received.headers, delivery, carries)
                payload = received.payload
                if target is not None and target.conversion is not None:
                    payload = convert_payload(payload, target.conversion)
                message = Message(delivery.address, payload, headers)
                if target is not None and target.add_message_id:
                    copy = self._copy_id(batch, position, in_flight)
                    message = _with_ids(message, copy, in_flight.trace(position).hex())
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
            made.positions.append(position)
            made.deliveries.append(delivery)
            made.messages.append(message)
        return made

    def _copy_id(self, batch: Batch, position: int, in_flight: SharedBatch) -> str:
        """The id of the copies of a message: from the identity of its source where it has one."""
        message = batch.messages[position]
        given = message.headers.properties.get(GATEWAY_ID)
        identity = given if isinstance(given, str) else message.headers.source_id
        if identity is None and batch.identities:
            identity = batch.identities[position]
        if not identity:
            return in_flight.message_id(position).hex()
        return copy_id(self._endpoint, identity, message)


def _with_ids(message: Message, copy: str, trace: str) -> Message:
    """Add the properties `gateway_id` and `gateway_trace` to a copy."""
    properties = {**message.headers.properties, GATEWAY_ID: copy, GATEWAY_TRACE: trace}
    return replace(message, headers=replace(message.headers, properties=properties))
