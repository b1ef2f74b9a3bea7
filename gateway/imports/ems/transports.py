"""What topics.conf ties to Rendezvous and SmartSockets, told beside the routes it concerns.

The ties stay in the EMS server: it imports and exports, and the gateway reads and writes EMS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.dialects.base import parse_pattern, warnings_of
from gateway.dialects.systems.ems import EMS
from gateway.dialects.systems.rendezvous import RV
from gateway.dialects.systems.smartsockets import SMARTSOCKETS
from gateway.errors import SubjectError, TranslationError
from gateway.imports.checks import may_overlap
from gateway.imports.ems.config_files import Topic, Transport
from gateway.imports.lines import Fate, Left
from gateway.translate.subscriptions import translate_pattern

SYSTEMS = {"tibrv": "rv", "tibrvcm": "rv", "tibss": "smartsockets"}
SERVER = "the EMS server goes on doing this"


@dataclass(frozen=True, slots=True)
class Ties:
    """The topics with import or export, whose names are legal, and the transports by name."""

    topics: tuple[Topic, ...]
    transports: dict[str, Transport]

    def source_notes(self, pattern: str) -> list[str]:
        """What to know about a route that takes `pattern` from the server."""
        return [
            f"{topic.place}: some come from {self._named(topic.imports)}{self._modes(topic)}. The"
            " server imports only while somebody subscribes, as this route does."
            for topic in self.topics
            if topic.imports and may_overlap(pattern, topic.name, EMS)
        ]

    def target_notes(self, name: str) -> list[str]:
        """What to know about a route that sends to the topic `name`."""
        return [
            f"{topic.place}: the server exports this to {self._named(topic.exports)}; the name is"
            f" written for dialect: {self._dialects(topic.exports)}"
            for topic in self.topics
            if topic.exports and may_overlap(name, topic.name, EMS)
        ]

    def remarks(self) -> list[str]:
        """The ties one by one, for the end of the file."""
        if not self.topics:
            return []
        said = [
            (
                "The EMS server exchanges these topics with Rendezvous and SmartSockets, and goes"
                " on doing so. A name has to be legal on both sides. What was imported is never"
                " exported again on the same topic; what the gateway sends to such a topic is."
            )
        ]
        return said + [self._remark(topic) for topic in self.topics]

    def _remark(self, topic: Topic) -> str:
        ways = []
        if topic.imports:
            ways.append(f"from {self._named(topic.imports)}{self._modes(topic)}")
        if topic.exports:
            ways.append(f"to {self._named(topic.exports)}")
        names = (*topic.imports, *topic.exports)
        said = f"- {topic.place}: {topic.name!r} {' and '.join(ways)}"
        more = [f"there it is {name!r}" for name in self._there(topic)]
        if "rv" in self._systems(names):
            more += [f"rv: {advice}" for advice in warnings_of(topic.name, RV)]
        return "; ".join([said, f"dialect: {self._dialects(names)}", *more])

    def _there(self, topic: Topic) -> list[str]:
        if "smartsockets" not in self._systems((*topic.imports, *topic.exports)):
            return []
        return [fault.name for fault in _smartsockets(topic.name) if fault.name]

    def _systems(self, names: Iterable[str]) -> tuple[str, ...]:
        types = (self.transports[name].type for name in names if name in self.transports)
        return tuple(dict.fromkeys(SYSTEMS[each] for each in types if each in SYSTEMS))

    def _dialects(self, names: Iterable[str]) -> str:
        return f"[{', '.join(('ems', *self._systems(names)))}]"

    def _named(self, names: Iterable[str]) -> str:
        return ", ".join(
            f"{name} ({self.transports[name].type})" if name in self.transports else name
            for name in dict.fromkeys(names)
        )

    def _modes(self, topic: Topic) -> str:
        known = (self.transports[name] for name in topic.imports if name in self.transports)
        modes = dict.fromkeys(each.topic_mode for each in known)
        weak = [mode for mode in modes if mode != "TIBEMS_PERSISTENT"]
        return f" as {', '.join(weak)}, at most once" if weak else ""


@dataclass(frozen=True, slots=True)
class _Spelled:
    name: str
    fault: str = ""


def make_ties(topics: Sequence[Topic], transports: Sequence[Transport]) -> tuple[Ties, list[Left]]:
    """The ties, and what of the two files is not in the mapping."""
    left = [
        Left(topic.place, f"property {key!r} of topic {topic.name!r}", SERVER, Fate.STAYS)
        for topic in topics
        for key in topic.properties
    ]
    left += [
        Left(topic.place, f"JNDI names of topic {topic.name!r}", SERVER, Fate.STAYS)
        for topic in topics
        if topic.jndi
    ]
    left += [
        Left(place, f"option {key!r} of transport {transport.name!r}", SERVER, Fate.STAYS)
        for transport in transports
        for place, key in transport.options
    ]
    known = {transport.name: transport for transport in transports}
    tied = [topic for topic in topics if topic.imports or topic.exports]
    for topic in tied:
        left += [Left(topic.place, f"topic {topic.name!r}", why) for why in _faults(topic, known)]
    legal = tuple(topic for topic in tied if _legal_in_ems(topic.name))
    return Ties(legal, known), left


def _faults(topic: Topic, transports: dict[str, Transport]) -> list[str]:
    """Why a tie is in doubt: an unknown transport, or a name that one side does not have."""
    names = tuple(dict.fromkeys((*topic.imports, *topic.exports)))
    found = [
        f"no transport {name!r} is known, so nor is its dialect; give its transports.conf too"
        for name in names
        if name not in transports
    ]
    try:
        parse_pattern(topic.name, EMS)
    except SubjectError as error:
        return [*found, str(error)]
    types = {transports[name].type for name in names if name in transports}
    if types & {"tibrv", "tibrvcm"}:
        found += _rendezvous(topic.name)
    if "tibss" in types:
        found += [each.fault for each in _smartsockets(topic.name) if each.fault]
    return found


def _rendezvous(name: str) -> list[str]:
    """Rendezvous spells names as EMS does, so only its limits and its own names differ."""
    try:
        parse_pattern(name, RV)
    except (SubjectError, TranslationError) as error:
        return [str(error)]
    return []


def _smartsockets(name: str) -> list[_Spelled]:
    try:
        covering = translate_pattern(name, EMS, SMARTSOCKETS)
    except (SubjectError, TranslationError) as error:
        return [_Spelled("", str(error))]
    return [_Spelled(each) for each in covering.patterns]


def _legal_in_ems(name: str) -> bool:
    try:
        parse_pattern(name, EMS)
    except SubjectError:
        return False
    return True
