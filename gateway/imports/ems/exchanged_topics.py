"""Topics that the EMS server exchanges with Rendezvous and SmartSockets, as notes on routes.

The server continues to import and export them; the gateway is a client of EMS only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gateway.dialects.base import parse_pattern, warnings_of
from gateway.dialects.systems.ems import EMS
from gateway.dialects.systems.rendezvous import RV
from gateway.dialects.systems.smartsockets import SMARTSOCKETS
from gateway.imports.ems.config_files import Topic, Transport
from gateway.imports.route_checks import fault_of, may_overlap
from gateway.imports.source_lines import LineStatus, OmittedLine, SourceLine
from gateway.translate.subscriptions import translate_pattern

SYSTEMS = {"tibrv": "rv", "tibrvcm": "rv", "tibss": "smartsockets"}
STAYS = "the EMS server continues to apply it"


@dataclass(frozen=True, slots=True)
class TopicExchange:
    """Topics with a legal name and an import or export, and the transports by name."""

    topics: tuple[Topic, ...]
    transports: dict[str, Transport]

    def source_notes(self, pattern: str) -> list[str]:
        """Return notes for a route that receives `pattern` from the server."""
        return [
            f"{topic.location}: some messages come from {self._origins(topic)}. The server imports"
            " only while a client subscribes, as this route does."
            for topic in self.topics
            if topic.imports and may_overlap(pattern, topic.name, EMS)
        ]

    def target_notes(self, name: str) -> list[str]:
        """Return notes for a route that sends to the topic `name`."""
        return [
            f"{topic.location}: the server exports this to {self._transport_names(topic.exports)};"
            f" the name must be legal in dialect: {self._dialects(topic.exports)}"
            for topic in self.topics
            if topic.exports and may_overlap(name, topic.name, EMS)
        ]

    def remarks(self) -> list[str]:
        """Return a remark for each topic, for the end of the file."""
        first = (
            "The EMS server continues to exchange these topics with Rendezvous and SmartSockets. A"
            " name must be legal on both sides. A message that was imported is never exported again"
            " on the same topic; a message of the gateway is."
        )
        return [first, *map(self._remark, self.topics)] if self.topics else []

    def _remark(self, topic: Topic) -> str:
        directions = [f"from {self._origins(topic)}"] if topic.imports else []
        if topic.exports:
            directions.append(f"to {self._transport_names(topic.exports)}")
        names = (*topic.imports, *topic.exports)
        summary = f"- {topic.location}: {topic.name!r} {' and '.join(directions)}"
        more = [f"there it is {name!r}" for name in self._smartsockets_names(topic)]
        if "rv" in self._systems(names):
            more += [f"rv: {advice}" for advice in warnings_of(topic.name, RV)]
        return "; ".join([summary, f"dialect: {self._dialects(names)}", *more])

    def _smartsockets_names(self, topic: Topic) -> list[str]:
        is_there = "smartsockets" in self._systems((*topic.imports, *topic.exports))
        if not is_there or fault_of(translate_pattern, topic.name, EMS, SMARTSOCKETS):
            return []
        return list(translate_pattern(topic.name, EMS, SMARTSOCKETS).patterns)

    def _systems(self, names: Iterable[str]) -> tuple[str, ...]:
        types = (self.transports[name].type for name in names if name in self.transports)
        return tuple(dict.fromkeys(SYSTEMS[each] for each in types if each in SYSTEMS))

    def _dialects(self, names: Iterable[str]) -> str:
        return f"[{', '.join(('ems', *self._systems(names)))}]"

    def _transport_names(self, names: Iterable[str]) -> str:
        return ", ".join(
            f"{name} ({self.transports[name].type})" if name in self.transports else name
            for name in dict.fromkeys(names)
        )

    def _origins(self, topic: Topic) -> str:
        """Return the transports that a topic is imported from, and their weak delivery modes."""
        names = self._transport_names(topic.imports)
        known = (self.transports[name] for name in topic.imports if name in self.transports)
        modes = dict.fromkeys(each.topic_mode for each in known)
        weak = [mode for mode in modes if mode != "TIBEMS_PERSISTENT"]
        return f"{names} as {', '.join(weak)}, at most once" if weak else names


def find_exchanged_topics(
    topics: Sequence[Topic], transports: Sequence[Transport]
) -> tuple[TopicExchange, list[OmittedLine]]:
    """Return the exchanged topics, and the lines of both files that are not in the mapping."""
    omitted = [
        OmittedLine(location, item, STAYS, LineStatus.STAYS_AT_BROKER)
        for location, item in _staying(topics, transports)
    ]
    known = {transport.name: transport for transport in transports}
    exchanged = [topic for topic in topics if topic.imports or topic.exports]
    for topic in exchanged:
        omitted += [
            OmittedLine(topic.location, f"topic {topic.name!r}", fault)
            for fault in _faults(topic, known)
        ]
    legal = tuple(topic for topic in exchanged if not fault_of(parse_pattern, topic.name, EMS))
    return TopicExchange(legal, known), omitted


def _staying(
    topics: Sequence[Topic], transports: Sequence[Transport]
) -> Iterator[tuple[SourceLine, str]]:
    """Yield what the server continues to apply, each with its line."""
    for topic in topics:
        for key in topic.properties:
            yield topic.location, f"property {key!r} of topic {topic.name!r}"
        if topic.jndi:
            yield topic.location, f"JNDI names of topic {topic.name!r}"
    for transport in transports:
        for location, key in transport.options:
            yield location, f"option {key!r} of transport {transport.name!r}"


def _faults(topic: Topic, transports: dict[str, Transport]) -> list[str]:
    """Return faults of an exchange: unknown transports, names that are illegal on one side."""
    names = tuple(dict.fromkeys((*topic.imports, *topic.exports)))
    found = [
        f"no transport {name!r} is known, and so its dialect is unknown; import transports.conf too"
        for name in names
        if name not in transports
    ]
    if fault := fault_of(parse_pattern, topic.name, EMS):
        return [*found, fault]
    types = {transports[name].type for name in names if name in transports}
    if types & {"tibrv", "tibrvcm"}:
        found.append(fault_of(parse_pattern, topic.name, RV))  # the syntax of EMS, other limits
    if "tibss" in types:
        found.append(fault_of(translate_pattern, topic.name, EMS, SMARTSOCKETS))
    return [each for each in found if each]
