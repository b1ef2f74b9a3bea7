"""Admission of received messages: each copy of a route goes on, or has a row that says why not.

A route leaves a message out as a loop, a duplicate, an unwanted or an unselected message. That is
a cut, with a row for each target, where the broker still has the message for others. A source that
removes what it reads has the only one: there it becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from gateway.model.cut_class import RETAINED
from gateway.model.dead_letter_rule import (
    HOPS,
    INTERNAL,
    LOOP,
    NO_ROUTE,
    NOT_ALLOWED,
    UNSELECTED,
    DeadLetterRule,
)
from gateway.model.message import GATEWAY_ID, Headers, Message, identity_of
from gateway.routing.origin_path import GatewayIdentity
from gateway.routing.route import Route
from gateway.routing.router import Delivery, RouteMatch, Router
from gateway.runtime.delivery.copy_paths import DEFAULT_RULES, PathRules
from gateway.runtime.delivery.duplicates import DuplicateFilter
from gateway.runtime.delivery.earlier_batch import EarlierBatch
from gateway.runtime.delivery.path_check import PathCheck
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import Cut

DUPLICATE: Final = "duplicate"
IGNORED: Final = "ignored"  # retained, and its route takes no such message

TakeOrigin: TypeAlias = Callable[[str, Message], tuple[str, ...]]  # of an echo from a broker


_CAME_BACK: Final = "it came back to a broker and name where it was, and its source had it alone"
_NOT_WANTED: Final = "no selector of a route takes it, and its source had the only one"


def never(_: str) -> bool:
    """Return that a source leaves its messages to others."""
    return False


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """The routes of a source and the echo settings of its broker.

    `removes` says whether the source had the only message of a name. `echo_broker` is the key of a
    broker that returns our own messages without their origin path, or empty. Two messages with
    the same name and payload within `echo_window` count as one. `admits_reply` tells whether a
    route with `replies_within` takes a message with this address; None without such a route.
    Units: seconds.
    """

    router: Router
    removes: Callable[[str], bool] = never
    echo_broker: str = ""
    echo_window: float = 0.0
    admits_reply: Callable[[Route, str], bool] | None = None


class _LeftOut(NamedTuple):
    """The deliveries of a route that do not go on; `at_target`: each target had the message."""

    match: RouteMatch
    reason: str
    at_target: bool = False


class Admission:
    """Admission of the messages of one source endpoint.

    Mutable: owned by the source's thread.
    """

    def __init__(
        self,
        gateway: GatewayIdentity,
        duplicates: DuplicateFilter,
        take_origin: TakeOrigin,
        path_rules: PathRules = DEFAULT_RULES,
    ) -> None:
        self.path_check = PathCheck(gateway, path_rules)
        self._duplicates = duplicates
        self._take_origin = take_origin
        self._path_rules = path_rules

    def recognise(
        self, batch: ReceivedBatch, rules: AdmissionRules, known_as: EarlierBatch
    ) -> None:
        """Mark the echoes and duplicates among the messages of a `batch`.

        A message that equals no digest begins a new path. An echo gets its origin path back. A
        duplicate is marked as redelivered; later ones find this batch as `known_as`. Waits for the
        answers to copies that equal a message.
        """
        messages = batch.messages
        carried = any(each.proof or each.headers.origin for each in messages)
        if carried:
            self.path_check.check(batch, rules.router)
        recognisable = carried or rules.echo_broker or rules.echo_window
        distinct = {id(message.headers): message.headers for message in messages}
        has_ids = bool(batch.identities) or any(
            each.source_id or GATEWAY_ID in each.properties for each in distinct.values()
        )
        if not (recognisable or has_ids) or self._are_new(batch, rules, known_as, has_ids=has_ids):
            return
        messages = batch.messages
        changed: dict[int, Message] = {}
        for position, message in enumerate(messages):
            headers = message.headers
            if rules.echo_broker and not headers.origin:
                origin = self._take_origin(rules.echo_broker, message)
                if origin:
                    headers = replace(headers, origin=origin)
                    changed[position] = replace(message, headers=headers)
                    continue
            earlier = same = self._find_earlier(batch, position, rules, known_as)
            if rules.removes(message.address):
                same = self._find_same_copy(batch, position, earlier, known_as)
            if same is not None:
                batch.earlier[position] = same
            if earlier is not None:
                changed[position] = replace(message, headers=replace(headers, redelivered=True))
        if changed:
            batch.messages = [changed.get(at, message) for at, message in enumerate(messages)]

    def _are_new(
        self, batch: ReceivedBatch, rules: AdmissionRules, known_as: EarlierBatch, *, has_ids: bool
    ) -> bool:
        """Remember a batch that has no echo and no duplicate, which is usual; else return False."""
        if rules.echo_broker or rules.echo_window:
            return False
        messages = batch.messages
        names = [message.address for message in messages]
        if any(map(rules.removes, names)):
            return False
        firsts: Sequence[str] = batch.firsts
        if self._path_rules.keys or rules.router.selective:
            firsts = [self._original_of(batch, at, rules.router) for at in range(len(messages))]
        keys = [*zip(names, firsts, batch.hashes, strict=True)]
        if has_ids:
            numbers = batch.identities or [""] * len(messages)
            headers = [message.headers for message in messages]
            ids = [identity_of(*each) or "" for each in zip(headers, numbers, strict=True)]
            keys = [key for key, own in zip(keys, ids, strict=True) if key[1] != own]
            keys += zip(names, ids, batch.hashes, strict=True)
        return self._duplicates.add_new([key for key in keys if key[1]], known_as)

    def match(self, batch: ReceivedBatch, rules: AdmissionRules) -> None:
        """Route the messages of a batch and admit them."""
        messages, router = batch.messages, rules.router
        try:
            if router.uses_fields:
                batch.matches = [router.match(message) for message in messages]
            else:
                batch.matches = [router[message.address] for message in messages]
        except Exception:  # noqa: BLE001  # the gateway's fault on one name; try each name
            batch.matches = [_route_one(message, router, batch) for message in messages]
        if not all(batch.matches):
            _refuse_unrouted(batch, rules)
        if rules.admits_reply is not None:
            _refuse_unasked(batch, rules.admits_reply)
        distinct = {id(message.headers): message.headers for message in messages}
        plain = not any(each.retained for each in distinct.values())
        passed = {mark for each in distinct.values() for mark in each.origin}
        if plain and not batch.earlier and not router.selective:
            ends = any(batch.hops) and self._path_rules.ends(max(batch.hops))
            if not ends and not (passed and _come_back(passed, batch.matches)):
                return
        for position in range(len(messages)):
            try:
                kept = self._admit(batch, position, rules)
            except Exception as error:  # noqa: BLE001  # of a selector on one value
                kept = _refuse(error, batch)
            batch.matches[position] = kept

    def _admit(
        self, batch: ReceivedBatch, position: int, rules: AdmissionRules
    ) -> tuple[RouteMatch, ...]:
        """The matches whose routes admit the message, without deliveries that make a loop."""
        headers = batch.messages[position].headers
        recognised_as = DUPLICATE if position in batch.earlier else ""
        kept: list[RouteMatch] = []
        left: list[_LeftOut] = []
        for match in batch.matches[position]:
            route = match.route
            if route is None:
                kept.append(match)
                continue
            reason = _reason_against(match, headers) or recognised_as
            if reason:
                batch.left_out.append((route.name, reason))
            if not reason or (reason == DUPLICATE and not route.drop_duplicates):
                onward, looped = _without_loops(match, headers.origin)
                kept += self._within_hops(onward, batch, position)
                if looped:
                    batch.left_out.append((route.name, LOOP))
                    left.append(_LeftOut(looped, LOOP, at_target=True))
            else:
                left.append(_LeftOut(match, reason))
        return (
            (*kept, *_left_out(left, batch, position, rules, sole=not kept)) if left else (*kept,)
        )

    def _within_hops(
        self, onward: list[RouteMatch], batch: ReceivedBatch, position: int
    ) -> list[RouteMatch]:
        """The matches; refused where too many gateways have sent the message on."""
        hops = batch.hops[position]
        if not self._path_rules.ends(hops):
            return onward
        limit = self._path_rules.max_hops
        reason = (
            f"it was sent on {hops} times, and `gateway.max_hops` is {limit}: a circle that"
            " `gateway check` with the files of all gateways finds, or a longer way than allowed"
        )
        return [_refused(each, HOPS, reason) for each in onward]

    def _find_earlier(
        self, batch: ReceivedBatch, position: int, rules: AdmissionRules, known_as: EarlierBatch
    ) -> EarlierBatch | None:
        """The batch that had the message at `position` before; None if no batch had it."""
        message = batch.messages[position]
        headers = message.headers
        identity = identity_of(headers, batch.identities[position] if batch.identities else "")
        first = self._original_of(batch, position, rules.router)
        if not identity and not first and not rules.echo_window:
            return None
        name, digest = message.address, batch.hashes[position]
        find = self._duplicates.find_or_add
        earlier = find((name, identity, digest), known_as) if identity else None
        if first and first != identity:  # the first gateway may have given it as `gateway_id`
            earlier = find((name, first, digest), known_as) or earlier
        if rules.echo_window and earlier is None:
            earlier = find((name, "", digest), known_as, rules.echo_window)
        return earlier

    def _original_of(self, batch: ReceivedBatch, position: int, router: Router) -> str:
        """The first id of a message, by which a source takes it once; empty where none is believed.

        A message that a selector leaves out was not taken: a copy with other properties may be.
        """
        first = batch.firsts[position]
        if not first or (self._path_rules.keys and position not in batch.signed):
            return ""
        if not router.selective:
            return first
        return f"{first} {router.selection(batch.messages[position].headers)}"

    def _find_same_copy(
        self,
        batch: ReceivedBatch,
        position: int,
        earlier: EarlierBatch | None,
        known_as: EarlierBatch,
    ) -> EarlierBatch | None:
        """The batch that had this very copy, of those in a queue that have one identity.

        Somebody may put a message back with its ids. If a gateway has sent it since, its proof is
        another one, also where the broker delivers both copies again. A batch that was settled over
        this connection does not come again: another reader held and returned a later copy.
        """
        message = batch.messages[position]
        if message.proof:
            key = message.address, message.proof, batch.hashes[position]
            earlier = self._duplicates.find_or_add(key, known_as)
        if earlier is None or not message.headers.redelivered:
            return None
        return None if earlier.is_over_for(known_as) else earlier


def _come_back(passed: AbstractSet[str], found: Sequence[tuple[RouteMatch, ...]]) -> bool:
    """Return whether a delivery begins or ends at a place that one of the messages has passed."""
    for matches in found:
        for match in matches:
            for each in match.deliveries:
                if each.source_mark in passed or each.target_mark in passed:
                    return True
    return False


def _reason_against(match: RouteMatch, headers: Headers) -> str:
    """Why the route of a match does not admit a message; empty if there is no reason.

    A message that comes back to a broker and name on its path goes round, whatever route it takes.
    """
    route = match.route
    if route is None:
        return ""
    if headers.retained and not route.take_retained:
        return IGNORED
    if route.selector is not None and not route.selector.matches(headers):
        return UNSELECTED
    if headers.origin and any(each.source_mark in headers.origin for each in match.deliveries):
        return LOOP
    return ""


def _without_loops(
    match: RouteMatch, origin: tuple[str, ...]
) -> tuple[list[RouteMatch], RouteMatch | None]:
    """Divide a match by the path `origin`: what goes on, and deliveries to places on the path."""
    looped = [each for each in match.deliveries if each.target_mark and each.target_mark in origin]
    if not origin or not looped:
        return [match], None
    onward = tuple(each for each in match.deliveries if each not in looped)
    rest = [replace(match, deliveries=onward)] if onward else []
    return rest, replace(match, deliveries=tuple(looped))


def _left_out(
    left: Sequence[_LeftOut],
    batch: ReceivedBatch,
    position: int,
    rules: AdmissionRules,
    *,
    sole: bool,
) -> Iterator[RouteMatch]:
    """Record the deliveries that routes leave out, and yield those that become dead letters.

    `sole`: no route takes the message.
    """
    message = batch.messages[position]
    removed = rules.removes(message.address)
    for match, reason, at_target in left:
        if removed and reason == LOOP:
            yield _refused(match, LOOP, _CAME_BACK)
        elif removed and reason == UNSELECTED and sole:
            yield _refused(match, UNSELECTED, _NOT_WANTED)
        elif match.route is not None:
            why = RETAINED if message.headers.retained else ""
            signed = position in batch.signed
            route = match.route.name
            batch.cuts += [
                Cut(position, route, each.label, reason, why, signed, each.address * at_target)
                for each in match.deliveries
            ]


def _refused(match: RouteMatch, rule: DeadLetterRule, reason: str) -> RouteMatch:
    """The same deliveries as dead letters of `rule`."""
    return replace(
        match,
        deliveries=tuple(replace(each, rule=rule, reason=reason) for each in match.deliveries),
    )


def _refuse_unrouted(batch: ReceivedBatch, rules: AdmissionRules) -> None:
    """A message that no route takes becomes a dead letter where its source had the only one.

    Elsewhere it is counted, and gets no row.
    """
    reason = "no route takes it, and its source had the only one"
    unrouted = (RouteMatch(None, (Delivery(None, None, "", rule=NO_ROUTE, reason=reason),)),)
    for position, matches in enumerate(batch.matches):
        if not matches and rules.removes(batch.messages[position].address):
            batch.matches[position] = unrouted
        elif not matches:
            batch.untaken.append(position)


def _refuse_unasked(batch: ReceivedBatch, admits: Callable[[Route, str], bool]) -> None:
    """Make a message a dead letter for a route of replies, where nobody asked for it."""
    reason = "the gateway handed out no such reply address in the last `replies_within` seconds"

    def asked(match: RouteMatch, address: str) -> RouteMatch:
        route = match.route
        if route is None or not route.replies_within or admits(route, address):
            return match
        return _refused(match, NOT_ALLOWED, reason)

    for position, matches in enumerate(batch.matches):
        address = batch.messages[position].address
        batch.matches[position] = tuple(asked(each, address) for each in matches)


def _route_one(message: Message, router: Router, batch: ReceivedBatch) -> tuple[RouteMatch, ...]:
    try:
        return router.match(message)
    except Exception as error:  # noqa: BLE001  # of a dialect on one name
        return _refuse(error, batch)


def _refuse(error: Exception, batch: ReceivedBatch) -> tuple[RouteMatch, ...]:
    """A fault of the gateway: this message becomes a dead letter, the others are routed."""
    batch.failures.append(error)
    reason = f"{type(error).__name__} while routing; this is a fault of the gateway"
    return (RouteMatch(None, (Delivery(None, None, "", rule=INTERNAL, reason=reason),)),)
