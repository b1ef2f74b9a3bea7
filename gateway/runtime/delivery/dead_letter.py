"""A message that a target rejected, or that no route could translate."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.model.message import Message, Value
from gateway.routing.payload_pick import PayloadPick
from gateway.routing.route import Route


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was rejected or could not be translated.

    With an `endpoint`, the message is the copy that this target rejected, ready to be sent again.
    Without one, it is the message as received, because the mapping could not translate it. With the
    rule SPOOL_DAMAGED, its payload is a row of the spool, and its messages are unknown.
    """

    number: int  # 0 until it is stored
    time: int  # microseconds since 1970-01-01 UTC
    id: bytes
    route: str
    source: str  # the endpoint it was received from
    source_name: str
    target: str  # the label of the target; empty when no route took the message
    endpoint: str
    rule: str
    reason: str
    attempts: int
    message: Message
    fields: str = ""  # those of the message in the name, as the archive has them

    def as_message(self, name: str, *, withheld: bool = False) -> Message:
        """A copy to publish to `name`: the same payload, the dead letter's facts as properties.

        A `withheld` payload stays behind.
        """
        facts: dict[str, Value] = {
            "dead_rule": self.rule,
            "dead_reason": self.reason,
            "dead_route": self.route,
            "dead_target": self.target,
            "dead_source": self.source,
            "dead_name": self.source_name,
            "dead_time": self.time,
            "dead_attempts": self.attempts,
        }
        if withheld:
            facts["dead_payload"] = "withheld: the target may get picked fields only"
        properties = {**self.message.headers.properties, **facts}
        headers = replace(self.message.headers, properties=properties, reply_to=None)
        return Message(name, b"" if withheld else self.message.payload, headers)


def picks(route: Route | None, letter: DeadLetter) -> bool:
    """Return whether the target of a letter gets picked fields only; its payload may have others.

    A letter without a target is of all of them. Nobody knows what a route picked that a reload has
    removed.
    """
    if route is None:
        return bool(letter.route)
    label = letter.target.partition("#")[0]
    return any(
        isinstance(each.conversion, PayloadPick) and each.conversion.paths is not None
        for each in route.targets
        if label in {each.label, ""}
    )
