"""What of a batch goes on: loops, duplicates, retained messages and selectors decide here."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gateway.endpoints.base import Batch
from gateway.model.message import Headers, Message, identity_of
from gateway.routing.route import Route
from gateway.routing.router import Hop, Router, Way
from gateway.runtime.context import Intake, Surroundings
from gateway.runtime.inbound.dedup import Landing, Seen
from gateway.runtime.record.rows import fingerprint

log = logging.getLogger(__name__)


class Admission:
    """For one source endpoint; mutable, it remembers what has come in."""

    def __init__(self, endpoint: str, around: Surroundings, seen: Seen) -> None:
        self._endpoint = endpoint
        self._around = around
        self._seen = seen

    def recognise(
        self, batch: Batch, intake: Intake, landing: Landing
    ) -> tuple[Batch, Mapping[int, Landing]]:
        """The batch, with what is known of messages that were here before, and which those are.

        An echo gets back the path it has gone; a duplicate is marked, and comes with the landing
        of the batch that had it first. `landing` is that of this batch.
        """
        twins: dict[int, Landing] = {}
        changed: dict[int, Message] = {}
        tells = batch.identities or intake.echoes_of or intake.echo_seconds
        if not tells and not any(map(identity_of, _different(batch.messages))):
            return batch, twins
        for position, message in enumerate(batch.messages):
            headers = message.headers
            if intake.echoes_of and not headers.origin:
                origin = self._around.echoes.origin(intake.echoes_of, message)
                if origin:
                    changed[position] = replace(message, headers=replace(headers, origin=origin))
                    continue
            given = batch.identities[position] if batch.identities else None
            twin = self._twin(message, given, intake.echo_seconds, landing)
            if twin is not None:
                twins[position] = twin
                changed[position] = replace(message, headers=replace(headers, redelivered=True))
        if changed:
            messages = [changed.get(at, message) for at, message in enumerate(batch.messages)]
            batch = replace(batch, messages=messages)
        return batch, twins

    def ways(
        self, messages: Sequence[Message], intake: Intake, twins: Mapping[int, Landing]
    ) -> list[tuple[Way, ...]]:
        """For each message the ways of the routes that take it; `twins` are those seen before."""
        router = intake.router
        try:
            found = [router[message.address] for message in messages]
        except Exception:  # noqa: BLE001  # one name of ours is at fault; the others are not
            found = [self._routed(message.address, router) for message in messages]
        plain = not any(each.origin or each.retained for each in _different(messages))
        if plain and not twins and not router.selective:
            return found
        return [
            self._taken(ways, message.headers, twin=position in twins)
            for position, (ways, message) in enumerate(zip(found, messages, strict=True))
        ]

    def _routed(self, name: str, router: Router) -> tuple[Way, ...]:
        try:
            return router[name]
        except Exception as error:
            # A fault of ours: this message is set aside with it, the route goes on.
            log.exception("a name was not routed", extra={"endpoint": self._endpoint})
            reason = f"{type(error).__name__} while routing; this is a fault of the gateway"
            return (Way(None, (Hop(None, None, "", rule="internal", reason=reason),)),)

    def _taken(self, ways: tuple[Way, ...], headers: Headers, *, twin: bool) -> tuple[Way, ...]:
        """Those of `ways` whose routes want a message with `headers`, and only onwards."""
        wanted = tuple(
            way for way in ways if way.route is None or self._wants(way.route, headers, twin)
        )
        return self._onwards(wanted, headers.origin) if headers.origin else wanted

    def _onwards(self, ways: tuple[Way, ...], origin: tuple[str, ...]) -> tuple[Way, ...]:
        """Without the hops to where the message has been under that name."""
        kept: list[Way] = []
        for way in ways:
            hops = tuple(hop for hop in way.hops if not (hop.mark and hop.mark in origin))
            if way.route is not None and len(hops) < len(way.hops):
                self._around.ledger.counters[way.route.name].cuts()
            if hops:
                kept.append(way if len(hops) == len(way.hops) else replace(way, hops=hops))
        return tuple(kept)

    def _wants(self, route: Route, headers: Headers, twin: bool) -> bool:
        """Whether `route` takes a message with `headers`; what it leaves is counted."""
        counters = self._around.ledger.counters[route.name]
        if headers.retained and not route.take_retained:
            counters.ignores()
        elif route.selector is not None and not route.selector.matches(headers):
            counters.passes_over()
        elif route.has_carried(self._around.gateway, headers.origin):
            counters.cuts()
        elif twin:
            counters.doubles()
            return not route.drop_duplicates
        else:
            return True
        return False

    def _twin(
        self, message: Message, given: str | None, seconds: float, landing: Landing
    ) -> Landing | None:
        """The batch that brought this message before, if one did; `given` is its broker's word."""
        headers, twin = message.headers, None
        identity = given
        if given is None or headers.properties:
            identity = identity_of(headers if given is None else replace(headers, source_id=given))
        if identity:
            twin = self._seen.find((message.address, identity), landing)
        if seconds and twin is None:
            key = (message.address, fingerprint(message.payload)[1])
            twin = self._seen.find(key, landing, seconds)
        return twin


def _different(messages: Sequence[Message]) -> Iterable[Headers]:
    """The headers of `messages`, shared ones once."""
    headers = [message.headers for message in messages]
    if len(set(map(id, headers))) == 1:
        return headers[:1]
    return {id(each): each for each in headers}.values()
