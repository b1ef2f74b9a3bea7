"""The copies of a received batch for one target: headers, payload and identity."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, TypeAlias

from xxhash import xxh3_128_hexdigest

from gateway.clock import now
from gateway.dialects.base import Dialect
from gateway.errors import TranslationError
from gateway.model.copy_proof import HOPS, content_digest, render_proof
from gateway.model.dead_letter_rule import INTERNAL, MESSAGE_BYTES
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import headers_size, text_size
from gateway.model.message import (
    GATEWAY_ID,
    GATEWAY_TRACE,
    NO_HEADERS,
    DroppedPayload,
    Headers,
    Message,
    Payload,
    identity_of,
)
from gateway.routing.carried_headers import (
    MappedHeaders,
    map_reply,
    optional_values,
    with_own,
)
from gateway.routing.header_rules import NO_RULES
from gateway.routing.origin_path import BrokerName, GatewayIdentity
from gateway.routing.route import WhenFull
from gateway.routing.router import Delivery
from gateway.runtime.delivery.copy_paths import DEFAULT_RULES, PathRules
from gateway.runtime.delivery.distribution import Copies
from gateway.runtime.delivery.duplicates import copy_id
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.record.batch_recorder import Counters
from gateway.tracing.context import trace_of

MAX_CACHE_SIZE: Final = 16 << 20  # bytes of the results of a source
_OVERHEAD: Final = 500  # bytes of a result beside its texts and properties
_ABSENT = optional_values(NO_HEADERS)
_Cached: TypeAlias = tuple[MappedHeaders, Headers, Delivery]


class HeaderMapper:
    """Maps the headers of one source endpoint and caches the results.

    Most messages of a source share one header object, so the cache keys are the id() of headers and
    delivery. An entry keeps a reference to both, so that no other object gets their id().
    Mutable: owned by the pump's thread.
    """

    def __init__(
        self,
        identity: GatewayIdentity,
        dialect: Dialect,
        counters: Counters,
        path_rules: PathRules = DEFAULT_RULES,
        hand_out: Callable[[BrokerName, str], None] = lambda _broker, _address: None,
    ) -> None:
        """`path_rules` are for the proofs of copies; `hand_out` gets each reply address there."""
        self._hand_out = hand_out
        self.path_rules = path_rules
        self.identity = identity
        self._dialect = dialect
        self._counters = counters
        self._cache: LimitedCache[tuple[int, int], _Cached] = LimitedCache(MAX_CACHE_SIZE)
        self._entries: dict[str, str] = {}  # of the origin path, by route

    def map_headers(self, headers: Headers, delivery: Delivery, carries: frozenset[str]) -> Headers:
        """Map headers for a target that carries the fields `carries`; count the lost fields.

        Raises:
            TranslationError: a rule of the target gives a value that its field cannot hold.
        """
        key = id(headers), id(delivery)
        known = self._cache.get(key)
        if known is not None:
            mapped, lost = known[0]
        else:
            mapped, lost = self._map(headers, delivery, carries)
            if headers.is_shared and delivery.rules is NO_RULES:  # rules may read the clock
                size = _OVERHEAD + 2 * headers_size(headers) + 2 * text_size(delivery.address)
                size += sum(
                    text_size(each) for each in delivery.own.values() if isinstance(each, str)
                )
                self._cache.add(key, ((mapped, lost), headers, delivery), size)
        if mapped.reply_to is not None and delivery.target is not None and "reply_to" not in lost:
            self._hand_out(delivery.target.broker, mapped.reply_to)
        if lost and delivery.route is not None:
            for field in lost:
                self._counters[delivery.route.name].count_lost_field(field)
        return mapped

    def _map(self, source: Headers, delivery: Delivery, carries: frozenset[str]) -> MappedHeaders:
        rules = delivery.rules
        headers = rules.apply(source, now()) if rules is not NO_RULES else source
        lost: tuple[str, ...] = ()
        if optional_values(headers) != _ABSENT:
            headers, lost = map_reply(headers, delivery.target, self._dialect, carries)
        if delivery.route is not None:  # even if not carried: an echo gets it back
            route = delivery.route.name
            carried = self._entries.get(route) or self._entries.setdefault(
                route, self.identity.entry(route)
            )
            taken = (delivery.source_mark,) if delivery.source_mark else ()
            before = map(str, headers.origin)  # a mark of the source is now one of many
            properties = with_own(headers.properties, delivery)
            headers = headers.with_origin((*before, *taken, carried), properties)
        return headers, lost


log = logging.getLogger(__name__)


def make_copies(
    mapper: HeaderMapper,
    in_flight: InFlightBatch,
    copies: Copies,
    when_full: WhenFull,
    carries: frozenset[str],
) -> OutboundBatch:
    """Make the messages of `copies`; `in_flight` records those that are refused.

    `carries` has the header fields that the target carries; one that carries the origin path gets
    also the proof of each copy.
    """
    received, map_headers = in_flight.received, mapper.map_headers
    endpoint = received.origin.endpoint
    positions: list[int] = []
    deliveries: list[Delivery] = []
    payloads: list[Payload] = []
    headers: list[Headers] = []
    for position, delivery in zip(*copies, strict=True):
        original, target = received.messages[position], delivery.target
        try:
            mapped = map_headers(original.headers, delivery, carries)
            payload = original.payload
            if isinstance(payload, DroppedPayload):
                _refuse_dropped(received.origin.system, original.address, payload)
            if delivery.conversion is not None:
                payload = delivery.conversion.convert(payload)
            if target is not None and target.add_message_id:
                number = received.identities[position] if received.identities else ""
                mapped = with_ids(mapped, original, endpoint, received.ids[position], number)
        except TranslationError as error:
            in_flight.refuse(position, replace(delivery, rule=error.rule, reason=str(error)))
            continue
        except Exception as error:
            log.exception("internal error while translating", extra={"endpoint": endpoint})
            reason = f"{type(error).__name__} while translating; this is a fault of the gateway"
            in_flight.refuse(position, replace(delivery, rule=INTERNAL, reason=reason))
            continue
        positions.append(position)
        deliveries.append(delivery)
        payloads.append(payload)
        headers.append(mapped)
    made = zip(positions, deliveries, payloads, headers, strict=True)
    proofs = _prove(mapper, received, made) if "origin" in carries else [""] * len(positions)
    addresses = [each.address for each in deliveries]
    messages = [*map(Message, addresses, payloads, headers, proofs)]
    return OutboundBatch(in_flight, when_full, messages, positions, deliveries)


def _prove(
    mapper: HeaderMapper,
    received: ReceivedBatch,
    made: Iterable[tuple[int, Delivery, Payload, Headers]],
) -> list[str]:
    """Return the proofs of copies that are `made` of the messages at some positions.

    The first id is a hash with the secret of the gateway: nobody can name the next one.
    """
    rules, secret = mapper.path_rules, mapper.identity.id.encode()
    ids, hashes = received.ids, received.hashes
    firsts, hops = received.firsts, received.hops
    proofs: list[str] = []
    for position, delivery, payload, headers in made:
        same = payload is received.messages[position].payload
        payload_hash = hashes[position] if same else fingerprint(payload)[1]
        own, name = ids[position], delivery.wire_name
        first = firsts[position] or xxh3_128_hexdigest(secret + own)
        digest = content_digest(name + payload_hash)
        proof = render_proof((first, own.hex(), HOPS[hops[position] + 1], digest))
        proofs.append(rules.sign(proof, name, payload_hash, headers) if rules.keys else proof)
    return proofs


def _refuse_dropped(system: str, address: str, payload: DroppedPayload) -> None:
    reason = (
        f"the payload has {payload.full} bytes: more than its source takes (`max_message_in`;"
        " MQTT: `max_packet_in`, YAMI4: `max_message`)"
    )
    raise TranslationError(system, address, MESSAGE_BYTES, reason)


def with_ids(  # a copy, and all that its ids follow from
    mapped: Headers,
    received: Message,
    endpoint: str,
    message_id: bytes,
    number: str = "",
    trace: bytes | None = None,
) -> Headers:
    """Return the `mapped` headers of a copy with the properties `gateway_id` and `gateway_trace`.

    Its id follows from the identity that its source `endpoint` gave the message, or from the
    `number` that the broker gave it; without one it is the `message_id` of the gateway. `trace` is
    that of the archive, where it is known.
    """
    identity = identity_of(received.headers, number)
    own = copy_id(endpoint, identity, received) if identity else message_id.hex()
    trace = trace or trace_of(received.headers.properties) or message_id
    properties = {**mapped.properties, GATEWAY_ID: own, GATEWAY_TRACE: trace.hex()}
    return mapped.with_properties(properties)
