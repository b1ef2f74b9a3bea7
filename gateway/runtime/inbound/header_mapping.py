"""Mapping of headers for a target: its rules, the fields it carries, and its reply address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.clock import now
from gateway.dialects.base import Dialect
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import headers_size, text_size
from gateway.model.message import NO_HEADERS, Headers
from gateway.routing.carried_headers import MappedHeaders, map_reply, optional_values
from gateway.routing.header_rules import NO_RULES
from gateway.routing.router import Delivery
from gateway.runtime.record.ledger import Counters

MAX_CACHE_SIZE: Final = 16 << 20  # bytes of the results of a source; a full cache is cleared
_OVERHEAD: Final = 800  # bytes of a result beside its texts and properties
_ABSENT = optional_values(NO_HEADERS)


@dataclass(frozen=True, slots=True)
class CachedMapping:
    """The mapped headers of one source header object and one delivery.

    Keeps a reference to both, so that their id() is not reused.
    """

    source: Headers
    delivery: Delivery
    mapped: MappedHeaders


class HeaderMapper:
    """Maps the headers of one source endpoint and caches the results.

    Most messages of a source share one header object, so the cache key is its id().
    Mutable: owned by the pump's thread.
    """

    def __init__(self, gateway: str, dialect: Dialect, counters: Counters) -> None:
        self._gateway = gateway
        self._dialect = dialect
        self._counters = counters
        self._cache: LimitedCache[tuple[int, int], CachedMapping] = LimitedCache(MAX_CACHE_SIZE)

    def map_headers(self, headers: Headers, delivery: Delivery, carries: frozenset[str]) -> Headers:
        """Map headers for a target that carries the fields `carries`; count the lost fields.

        Raises:
            TranslationError: a rule of the target gives a value that its field cannot hold.
        """
        cached = self._cache.get((id(headers), id(delivery)))
        if cached is not None and cached.source is headers and cached.delivery is delivery:
            mapped, lost = cached.mapped
        else:
            mapped, lost = self._map(headers, delivery, carries)
            # A source id is unique to its message, and rules may read the clock.
            if headers.source_id is None and delivery.rules is NO_RULES:
                self._remember(CachedMapping(headers, delivery, (mapped, lost)))
        if lost and delivery.route is not None:
            for field in lost:
                self._counters[delivery.route.name].count_lost_field(field)
        return mapped

    def _remember(self, mapping: CachedMapping) -> None:
        source, delivery = mapping.source, mapping.delivery
        size = 2 * headers_size(source) + 2 * text_size(delivery.address)
        self._cache.add((id(source), id(delivery)), mapping, _OVERHEAD + size)

    def _map(self, source: Headers, delivery: Delivery, carries: frozenset[str]) -> MappedHeaders:
        rules = delivery.rules
        headers = rules.apply(source, now()) if rules is not NO_RULES else source
        lost: tuple[str, ...] = ()
        if optional_values(headers) != _ABSENT:
            headers, lost = map_reply(headers, delivery.target, self._dialect, carries)
        if delivery.route is not None:  # even if not carried: an echo gets it back
            carried = f"{self._gateway}/{delivery.route.name}"
            taken = (delivery.source_mark,) if delivery.source_mark else ()
            headers = headers.with_origin((*headers.origin, *taken, carried))
        return headers, lost
