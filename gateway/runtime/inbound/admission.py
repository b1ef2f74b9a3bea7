"""Admission of received messages: drops loops, duplicates, unwanted and unselected messages."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xxhash import xxh3_128_digest

from gateway.endpoints.base import Batch
from gateway.model.message import Headers, Message, identity_of
from gateway.routing.route import Route
from gateway.routing.router import Delivery, RouteMatch, Router
from gateway.runtime.context import GatewayContext, SourceBinding
from gateway.runtime.inbound.dedup import BatchCompletion, DuplicateFilter
from gateway.runtime.record.rows import fingerprint

log = logging.getLogger(__name__)


class Admission:
    """Admission of the messages of one source endpoint.

    Mutable: owned by the pump's thread.
    """

    def __init__(self, endpoint: str, context: GatewayContext, duplicates: DuplicateFilter) -> None:
        self._endpoint = endpoint
        self._context = context
        self._duplicates = duplicates

    def recognise(
        self, batch: Batch, binding: SourceBinding, completion: BatchCompletion
    ) -> tuple[Batch, Mapping[int, BatchCompletion]]:
        """Recognise the echoes and duplicates of a batch.

        An echo gets its origin path back. A duplicate is marked as redelivered. Returns the
        changed batch, and the completion of the earlier batch by position of each duplicate;
        `completion` is the one of this batch.
        """
        earlier: dict[int, BatchCompletion] = {}
        changed: dict[int, Message] = {}
        recognisable = batch.identities or binding.echo_broker or binding.echo_window
        if not recognisable and not any(map(identity_of, _distinct_headers(batch.messages))):
            return batch, earlier
        for position, message in enumerate(batch.messages):
            headers = message.headers
            if binding.echo_broker and not headers.origin:
                origin = self._context.echoes.take_origin(binding.echo_broker, message)
                if origin:
                    changed[position] = replace(message, headers=replace(headers, origin=origin))
                    continue
            identity = batch.identities[position] if batch.identities else None
            found = self._find_earlier(message, identity, binding.echo_window, completion)
            if found is not None:
                earlier[position] = found
                changed[position] = replace(message, headers=replace(headers, redelivered=True))
        if changed:
            messages = [changed.get(at, message) for at, message in enumerate(batch.messages)]
            batch = replace(batch, messages=messages)
        return batch, earlier

    def match(
        self,
        messages: Sequence[Message],
        binding: SourceBinding,
        earlier: Mapping[int, BatchCompletion],
    ) -> list[tuple[RouteMatch, ...]]:
        """The admitted route matches of each message; `earlier` has the duplicates' positions."""
        router = binding.router
        try:
            found = [router[message.address] for message in messages]
        except Exception:  # noqa: BLE001  # a fault of ours on one name; try each name alone
            found = [self._route_one(message.address, router) for message in messages]
        plain = not any(each.origin or each.retained for each in _distinct_headers(messages))
        if plain and not earlier and not router.selective:
            return found
        return [
            self._admit_one(matches, message.headers, duplicate=position in earlier)
            for position, (matches, message) in enumerate(zip(found, messages, strict=True))
        ]

    def _route_one(self, name: str, router: Router) -> tuple[RouteMatch, ...]:
        try:
            return router[name]
        except Exception as error:  # noqa: BLE001  # of a dialect on one name
            return self._refuse_one(error)

    def _admit_one(
        self, matches: tuple[RouteMatch, ...], headers: Headers, *, duplicate: bool
    ) -> tuple[RouteMatch, ...]:
        try:
            return self._admitted(matches, headers, duplicate=duplicate)
        except Exception as error:  # noqa: BLE001  # of a selector on one value
            return self._refuse_one(error)

    def _refuse_one(self, error: Exception) -> tuple[RouteMatch, ...]:
        """A fault of ours: this message becomes a dead letter, the others are routed."""
        log.error(
            "internal error while routing", exc_info=error, extra={"endpoint": self._endpoint}
        )
        reason = f"{type(error).__name__} while routing; this is a fault of the gateway"
        return (RouteMatch(None, (Delivery(None, None, "", rule="internal", reason=reason),)),)

    def _admitted(
        self, matches: tuple[RouteMatch, ...], headers: Headers, *, duplicate: bool
    ) -> tuple[RouteMatch, ...]:
        """The matches whose routes admit the message, without deliveries that make a loop."""
        admitted = tuple(
            match
            for match in matches
            if match.route is None or self._admits(match.route, headers, duplicate)
        )
        return self._without_loops(admitted, headers.origin) if headers.origin else admitted

    def _without_loops(
        self, matches: tuple[RouteMatch, ...], origin: tuple[str, ...]
    ) -> tuple[RouteMatch, ...]:
        """The matches without deliveries to a broker and name on the path `origin`."""
        kept: list[RouteMatch] = []
        for match in matches:
            onward = tuple(
                each
                for each in match.deliveries
                if not (each.target_mark and each.target_mark in origin)
            )
            if match.route is not None and len(onward) < len(match.deliveries):
                self._context.ledger.counters[match.route.name].count_loop()
            if onward:
                complete = len(onward) == len(match.deliveries)
                kept.append(match if complete else replace(match, deliveries=onward))
        return tuple(kept)

    def _admits(self, route: Route, headers: Headers, duplicate: bool) -> bool:
        """Return whether `route` admits a message with `headers`; count it when it does not."""
        counters = self._context.ledger.counters[route.name]
        if headers.retained and not route.take_retained:
            counters.count_ignored()
        elif route.selector is not None and not route.selector.matches(headers):
            counters.count_unselected()
        elif route.has_carried(self._context.gateway, headers.origin):
            counters.count_loop()
        elif duplicate:
            counters.count_duplicate()
            return not route.drop_duplicates
        else:
            return True
        return False

    def _find_earlier(
        self,
        message: Message,
        source_id: str | None,
        echo_window: float,
        completion: BatchCompletion,
    ) -> BatchCompletion | None:
        """The completion of the batch that had this message before; None if no batch had it.

        `source_id` is the identity the broker gave, `echo_window` in seconds.
        """
        headers, earlier = message.headers, None
        identity = source_id
        if source_id is None or headers.properties:
            identity = identity_of(
                headers if source_id is None else replace(headers, source_id=source_id)
            )
        if not identity and not echo_window:
            return None
        name, payload = message.address, message.payload
        digest = (  # the usual payload without a call of ours
            xxh3_128_digest(payload) if isinstance(payload, bytes) else fingerprint(payload)[1]
        )
        if identity:
            earlier = self._duplicates.find_or_add((name, identity, digest), completion)
        if echo_window and earlier is None:
            earlier = self._duplicates.find_or_add((name, "", digest), completion, echo_window)
        return earlier


def _distinct_headers(messages: Sequence[Message]) -> Iterable[Headers]:
    """The header objects of `messages`, each once."""
    headers = [message.headers for message in messages]
    if len(set(map(id, headers))) == 1:
        return headers[:1]
    return {id(each): each for each in headers}.values()
