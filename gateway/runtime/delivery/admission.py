"""Admission of received messages: drops loops, duplicates, unwanted and unselected messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from xxhash import xxh3_128_digest

from gateway.model.dead_letter_rule import INTERNAL
from gateway.model.message import Headers, Message, identity_of
from gateway.routing.route import Route
from gateway.routing.router import Delivery, RouteMatch, Router
from gateway.runtime.delivery.duplicates import DuplicateFilter
from gateway.runtime.delivery.loop_limit import LoopLimit
from gateway.runtime.delivery.received_batch import EarlierBatch, ReceivedBatch
from gateway.runtime.delivery.rows import Cut, fingerprint

LOOP: Final = "loop"
LOOP_LIMIT: Final = "loop-limit"  # it went round, and no path shows that
DUPLICATE: Final = "duplicate"
IGNORED: Final = "ignored"  # retained, and its route takes no such message
UNSELECTED: Final = "unselected"

TakeOrigin: TypeAlias = Callable[[str, Message], tuple[str, ...]]  # of an echo from a broker


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """The routes of a source and the echo settings of its broker.

    `echo_broker` is the key of a broker that returns our own messages without their origin path,
    or empty. Two messages with the same name and payload within `echo_window` count as one. With
    `loop_window` equal messages may be a loop; 0 where a path shows loops.
    Units: seconds.
    """

    router: Router
    echo_broker: str = ""
    echo_window: float = 0.0
    loop_window: float = 0.0


class Admission:
    """Admission of the messages of one source endpoint.

    Mutable: owned by the source's thread.
    """

    def __init__(self, gateway: str, duplicates: DuplicateFilter, take_origin: TakeOrigin) -> None:
        self._gateway = gateway
        self._duplicates = duplicates
        self._take_origin = take_origin
        self._loop_limit = LoopLimit()

    def recognise(
        self, batch: ReceivedBatch, rules: AdmissionRules, known_as: EarlierBatch
    ) -> None:
        """Mark the echoes, duplicates and loops among the messages of a `batch`.

        An echo gets its origin path back. A duplicate is marked as redelivered; later ones find
        this batch as `known_as`. Waits for the answers to copies that equal a message.
        """
        messages, identities = batch.messages, batch.identities
        changed: dict[int, Message] = {}
        recognisable = identities or rules.echo_broker or rules.echo_window
        distinct = {id(message.headers): message.headers for message in messages}
        if recognisable or any(map(identity_of, distinct.values())):
            for position, message in enumerate(messages):
                headers = message.headers
                if rules.echo_broker and not headers.origin:
                    origin = self._take_origin(rules.echo_broker, message)
                    if origin:
                        headers = replace(headers, origin=origin)
                        changed[position] = replace(message, headers=headers)
                        continue
                earlier = self._find_earlier(batch, position, rules.echo_window, known_as)
                if earlier is not None:
                    batch.earlier[position] = earlier
                    changed[position] = replace(message, headers=replace(headers, redelivered=True))
        if rules.loop_window:
            rounds = self._loop_limit.find(messages, changed, known_as.arrived, rules.loop_window)
            batch.loops = rounds.cut
            for position, mode in rounds.marked.items():
                message = messages[position]
                headers = replace(message.headers, mode=mode)
                changed[position] = replace(message, headers=headers)
        if changed:
            batch.messages = [changed.get(at, message) for at, message in enumerate(messages)]

    def match(self, batch: ReceivedBatch, router: Router) -> None:
        """Route the messages of a batch and admit them."""
        messages = batch.messages
        try:
            batch.matches = [router[message.address] for message in messages]
        except Exception:  # noqa: BLE001  # a fault of ours on one name; try each name alone
            batch.matches = [_route_one(message.address, router, batch) for message in messages]
        distinct = {id(message.headers): message.headers for message in messages}
        plain = not any(each.origin or each.retained for each in distinct.values())
        if plain and not batch.earlier and not batch.loops and not router.selective:
            return
        for position in range(len(messages)):
            try:
                kept = self._admit(batch, position)
            except Exception as error:  # noqa: BLE001  # of a selector on one value
                kept = _refuse(error, batch)
            batch.matches[position] = kept

    def _admit(self, batch: ReceivedBatch, position: int) -> tuple[RouteMatch, ...]:
        """The matches whose routes admit the message, without deliveries that make a loop."""
        headers = batch.messages[position].headers
        recognised_as = DUPLICATE if position in batch.earlier else ""
        recognised_as = LOOP_LIMIT if position in batch.loops else recognised_as
        kept: list[RouteMatch] = []
        for match in batch.matches[position]:
            route = match.route
            if route is None:
                kept.append(match)
                continue
            reason = self._reason_against(route, headers) or recognised_as
            if reason:
                batch.left_out.append((route.name, reason))
            if reason in {LOOP, LOOP_LIMIT} or (reason == DUPLICATE and route.drop_duplicates):
                batch.cuts.append(Cut(position, route.name, reason))
            elif reason in {"", DUPLICATE}:
                kept += _without_loops(match, headers.origin, position, batch)
        return tuple(kept)

    def _reason_against(self, route: Route, headers: Headers) -> str:
        """Why `route` does not admit a message; empty if there is no reason."""
        if headers.retained and not route.take_retained:
            return IGNORED
        if route.selector is not None and not route.selector.matches(headers):
            return UNSELECTED
        if route.has_carried(self._gateway, headers.origin):
            return LOOP
        return ""

    def _find_earlier(
        self, batch: ReceivedBatch, position: int, echo_window: float, known_as: EarlierBatch
    ) -> EarlierBatch | None:
        """The batch that had the message at `position` before; None if no batch had it.

        Units: seconds.
        """
        message = batch.messages[position]
        headers = message.headers
        source_id = batch.identities[position] if batch.identities else None  # of the broker
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
        find = self._duplicates.find_or_add
        earlier = find((name, identity, digest), known_as) if identity else None
        if echo_window and earlier is None:
            earlier = find((name, "", digest), known_as, echo_window)
        return earlier


def _without_loops(
    match: RouteMatch, origin: tuple[str, ...], position: int, batch: ReceivedBatch
) -> list[RouteMatch]:
    """The match without deliveries to a broker and name on the path `origin`."""
    if not origin or match.route is None:
        return [match]
    onward = tuple(
        each for each in match.deliveries if not (each.target_mark and each.target_mark in origin)
    )
    if len(onward) == len(match.deliveries):
        return [match]
    batch.left_out.append((match.route.name, LOOP))
    if not onward:
        batch.cuts.append(Cut(position, match.route.name, LOOP))
        return []
    return [replace(match, deliveries=onward)]


def _route_one(name: str, router: Router, batch: ReceivedBatch) -> tuple[RouteMatch, ...]:
    try:
        return router[name]
    except Exception as error:  # noqa: BLE001  # of a dialect on one name
        return _refuse(error, batch)


def _refuse(error: Exception, batch: ReceivedBatch) -> tuple[RouteMatch, ...]:
    """A fault of ours: this message becomes a dead letter, the others are routed."""
    batch.failures.append(error)
    reason = f"{type(error).__name__} while routing; this is a fault of the gateway"
    return (RouteMatch(None, (Delivery(None, None, "", rule=INTERNAL, reason=reason),)),)
