"""Notifications of mosquitto's bridges, as states of connections that the gateway tells.

A state: its name, and the sides that keep it. Told: at the remote broker of the local connection,
and at the local broker of the remote one, as mosquitto does. No route carries a state on: each one
that would read its name excludes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from gateway.dialects.base import parse_pattern, parse_subject
from gateway.dialects.brokers import with_limits
from gateway.dialects.name_limits import NameLimits
from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.document import REFERENCE, EndpointEntry, StateEntry
from gateway.imports.mosquitto.config_file import BridgeConnection
from gateway.imports.mosquitto.routes import RouteDraft
from gateway.imports.mosquitto.topic_lines import Direction
from gateway.imports.route_checks import fault_of, find_brace_fault, is_covered, may_overlap
from gateway.imports.source_lines import OmittedLine
from gateway.model.overlap_index import candidate_pairs
from gateway.model.pattern import Pattern
from gateway.translate.names import OnUnmappable, Renderer

_RENDERER: Final = Renderer(with_limits(MQTT, NameLimits()), OnUnmappable.REJECT)
_BROKERS_OWN: Final = "`$SYS/broker/connection/...` belongs to the broker"
_NOT_RETAINED: Final = (
    "the state is told at the local broker only: it is a retained message, which a broker behind"
    " such a bridge may refuse; write a `state` for the other side if it keeps them"
)

MANY: Final = 20  # names of our own at one broker
_NOBODY: Final = -1  # the number of no bridge


@dataclass(frozen=True, slots=True)
class BridgeState:
    """State of a bridge; `is_given`: a line of the file has the name."""

    name: str
    is_given: bool
    at_remote: bool


_Told: TypeAlias = tuple[Pattern, tuple[int, BridgeState]]  # with the number of its bridge
_Read: TypeAlias = tuple[Pattern, tuple[int, int, Direction]]  # by a bridge and its draft


@dataclass(frozen=True, slots=True)
class BridgeDraft:
    """One connection: its routes in draft, its local and its remote endpoint, and its state."""

    connection: BridgeConnection
    drafts: tuple[RouteDraft, ...]
    pair: tuple[EndpointEntry, EndpointEntry]
    state: BridgeState | None

    def states(self) -> Iterator[StateEntry]:
        """Yield the state at each side that keeps it."""
        if self.state is not None:
            local, remote = (each.name for each in self.pair)
            note = f"{self.connection.location}: notifications of the connection"
            if self.state.at_remote:
                yield StateEntry(remote, local, self.state.name, f"{note}, at the other broker.")
            yield StateEntry(local, remote, self.state.name, f"{note}, at the broker of this file.")


def own_state(connection: str) -> str:
    """Return the name of the state of a connection that has none of its own."""
    return f"bridge/{connection}/state"


def state_of(
    connection: BridgeConnection, own_name: str, omitted: list[OmittedLine]
) -> BridgeState | None:
    """Return the state that the connection tells; with `own_name` where no client may use its own.

    What differs from the notifications is added to `omitted`.
    """
    options = connection.options
    if connection.is_set("notifications", "false"):
        return None
    at_remote = not connection.is_set("notifications_local_only", "true")
    if at_remote and connection.is_set("bridge_outgoing_retain", "false"):
        at_remote = False
        location = options["bridge_outgoing_retain"].location
        omitted.append(OmittedLine(location, _item(connection), _NOT_RETAINED))
    given = options.get("notification_topic")
    fault = _BROKERS_OWN if given is None else _fault(given.value)
    if given is not None and not fault:
        return BridgeState(given.value, is_given=True, at_remote=at_remote)
    reason = (
        f"it has another name, {own_name!r}, since no client may use the old one: {fault}; read the"
        " new name, or write one under `state`"
    )
    location = connection.location if given is None else given.location
    omitted.append(OmittedLine(location, _item(connection), reason))
    return BridgeState(own_name, is_given=False, at_remote=at_remote)


def without_states(bridges: Sequence[BridgeDraft], omitted: list[OmittedLine]) -> list[BridgeDraft]:
    """Return the bridges with routes that exclude every state at their source.

    A route that reads only states is left out.
    """
    excluded: dict[tuple[int, int], list[str]] = {}
    for (teller, state), (reader, at, direction) in _readings(bridges):
        draft, name = bridges[reader].drafts[at], state.name
        if draft.direction is Direction.BOTH and direction is Direction.IN:
            name = draft.local + name.removeprefix(draft.remote)  # excludes are local patterns
        excluded.setdefault((reader, at), []).append(name)
        if teller != reader and state.is_given:
            reason = (
                f"it reads the state of connection {bridges[teller].connection.name!r}, and no"
                " route carries a state on; write a `state` for that broker"
            )
            omitted.append(draft.lines[0].omitted(reason))
    found: list[BridgeDraft] = []
    for reader, bridge in enumerate(bridges):
        drafts = (
            replace(draft, states=tuple(dict.fromkeys(excluded.get((reader, at), ()))))
            for at, draft in enumerate(bridge.drafts)
        )
        kept = tuple(each for each in drafts if not _reads_states_only(each, omitted))
        found.append(replace(bridge, drafts=kept))
    return found


def _reads_states_only(draft: RouteDraft, omitted: list[OmittedLine]) -> bool:
    """Return whether its excludes leave it no name; it is then added to `omitted`."""
    pattern = draft.pattern_at(Direction.IN if draft.direction is Direction.IN else Direction.OUT)
    if not draft.states or not is_covered(pattern, (*draft.exclude, *draft.states), MQTT):
        return False
    reason = "it reads only the state of a connection, which the gateway tells itself"
    omitted.append(draft.lines[0].omitted(reason))
    return True


def _readings(
    bridges: Sequence[BridgeDraft],
) -> Iterator[tuple[tuple[int, BridgeState], tuple[int, int, Direction]]]:
    """Yield each state and its bridge, with a route that reads it, and the route's direction."""
    told, read = _by_broker(bridges)
    seen: set[object] = set()
    for broker, states in told.items():
        for (teller, state), reading in candidate_pairs(states, read.get(broker, [])):
            reader, at, direction = reading
            pattern = bridges[reader].drafts[at].pattern_at(direction)
            key = teller, reading
            if key not in seen and may_overlap(state.name, pattern, MQTT):
                seen.add(key)
                yield (teller, state), reading


def _by_broker(
    bridges: Sequence[BridgeDraft],
) -> tuple[dict[str, list[_Told]], dict[str, list[_Read]]]:
    """Return the states at each broker, and the reading routes there: no other pair is compared."""
    told: defaultdict[str, list[_Told]] = defaultdict(list)
    read: defaultdict[str, list[_Read]] = defaultdict(list)
    for number, bridge in enumerate(bridges):
        brokers = [each.broker for each in bridge.pair]
        if bridge.state is not None:
            for pattern in parse_pattern(bridge.state.name, MQTT):
                for broker in brokers[: 2 if bridge.state.at_remote else 1]:
                    told[broker].append((pattern, (number, bridge.state)))
        for at, draft in enumerate(bridge.drafts):
            for direction, broker in zip((Direction.OUT, Direction.IN), brokers, strict=True):
                if draft.crosses(direction):
                    for pattern in parse_pattern(draft.pattern_at(direction), MQTT):
                        read[broker].append((pattern, (number, at, direction)))
    return {broker: _few(states) for broker, states in told.items()}, read


def _few(states: list[_Told]) -> list[_Told]:
    """Return the states of one broker, with one pattern in place of many names of our own.

    Each route there excludes all of them: a list for each is the square of the connections.
    """
    given = [each for each in states if each[1][1].is_given]
    if len(states) - len(given) <= MANY:
        return states
    every = BridgeState(own_state("+"), is_given=False, at_remote=True)
    return [*given, *((each, (_NOBODY, every)) for each in parse_pattern(every.name, MQTT))]


def _item(connection: BridgeConnection) -> str:
    return f"the state of connection {connection.name!r}"


def _fault(name: str) -> str:
    """Return why no mapping and no client can have `name`; empty when they can."""
    if REFERENCE in name:
        return f"it contains {REFERENCE!r}, which the configuration would replace"
    return find_brace_fault(name) or fault_of(lambda: _RENDERER.render(parse_subject(name, MQTT)))
