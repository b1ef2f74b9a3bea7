"""The state of a session that the broker keeps, beyond one connection and one reload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from gateway.model.limited_cache import ENTRY_OVERHEAD
from gateway.model.memory_size import text_size
from gateway.model.message import Message
from gateway.untyped import Untyped
from gateway.wire.mqtt.topic_filters import any_selects, inner_filter

# bytes of the topics of remembered retained messages; a further one is marked when it comes again
MAX_RETAINED_SIZE = 16 << 20

UNCONFIRMED: Final = -1  # options that the broker has not answered for
NO_OPTIONS: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class KeptSession:
    """One session at one broker, as far as this process knows it.

    `filters` may be subscribed at the broker, each with the options that last until it is removed,
    or UNCONFIRMED. `unreleased` has the packet ids of QoS 2 whose PUBREC
    is sent and whose PUBREL has not arrived, with a hash of name and payload. `retained` has a hash
    of the payload of each retained message, by topic. `has_qos_0` is true once a message of QoS 0
    arrived: a broker keeps none. `left` came over a connection that failed before it was open, and
    the broker does not send it again; the next connection hands it out.
    Mutable: owned by the one open source of the session.
    """

    filters: dict[str, int] = field(default_factory=dict)
    unreleased: dict[int, int] = field(default_factory=dict)
    retained: dict[str, int] = field(default_factory=dict)
    retained_size: int = 0  # bytes
    is_unknown: bool = False  # an earlier run may have subscribed any filter
    new_filters: Sequence[str] = ()  # subscribed with this connection for the first time
    old_filters: Sequence[str] = ()  # subscribed with this connection again
    changed: Sequence[str] = ()  # the same with other options, as they are in a SUBSCRIBE
    was_lost: bool = False  # the broker made it again, and sends all that it retains
    has_qos_0: bool = False
    left: list[Message] = field(default_factory=list)

    def subscribe(self, wanted: Mapping[str, int], *, present: bool) -> None:
        """Note a new connection, which subscribes to `wanted`, the lasting options by filter.

        `present` is from the CONNACK.
        """
        old = wanted.keys() if self.is_unknown else wanted.keys() & self.filters.keys()
        self.old_filters = [*map(inner_filter, old)]
        self.was_lost = not present and (self.is_unknown or bool(self.filters))
        if not present:
            self.filters.clear()
            self.unreleased.clear()
            self.retained.clear()
            self.retained_size = 0
        new = wanted.keys() - self.filters.keys()
        self.new_filters = [*map(inner_filter, new)]
        self.changed = sorted(
            each for each in wanted.keys() - new if wanted[each] != self.filters[each]
        )
        self.filters |= wanted
        self.filters |= dict.fromkeys(self.changed, UNCONFIRMED)

    def confirm(self, wanted: Mapping[str, int]) -> None:
        """Note that the broker has answered for all subscriptions of this connection."""
        self.filters |= wanted

    def remove(self, filters: Iterable[str]) -> None:
        """Note that the broker has removed `filters`."""
        for each in filters:
            self.filters.pop(each, None)

    def unwanted(self, filters: Iterable[str]) -> list[str]:
        """Return the filters that the broker may still have besides `filters`."""
        return sorted(self.filters.keys() - {*filters})

    def may_be_sent_again(self, message: Message) -> bool:
        """Return whether a retained message may have come before, and is not remembered.

        An earlier run can have received it, or so many that this one was not noted.
        """
        topic = message.address
        return topic not in self.retained and any_selects(self.old_filters, topic)

    def is_sent_again(self, message: Message) -> bool:
        """Return whether a retained message was received before, and note it.

        A broker of 3.1.1 sends the retained messages with each SUBSCRIBE (MQTT 3.1.1, 3.8.4).
        """
        topic, content = message.address, hash(message.payload)
        if self.retained.get(topic) == content and not any_selects(self.new_filters, topic):
            return True
        if topic not in self.retained:
            size = ENTRY_OVERHEAD + text_size(topic)
            if self.retained_size + size > MAX_RETAINED_SIZE:
                return False
            self.retained_size += size
        self.retained[topic] = content
        return False

    def forget_retained(self, messages: Iterable[Message]) -> None:
        """Forget the retained ones among `messages`, so that they can be received again."""
        for message in messages:
            if message.headers.retained and self.retained.pop(message.address, None) is not None:
                self.retained_size -= ENTRY_OVERHEAD + text_size(message.address)


_sessions: dict[tuple[str, str], KeptSession] = {}


def kept_session(broker_key: str, client_id: str) -> KeptSession:
    """Return the session of a client at a broker; sources before and after a reload share it."""
    return _sessions.setdefault((broker_key, client_id), KeptSession())


def read_options(saved: Untyped) -> Mapping[str, int]:
    """Return the lasting options by filter. Raises ValueError when they are not numbers by text."""
    if not isinstance(saved, dict) or not all(isinstance(each, int) for each in saved.values()):
        raise ValueError(f"{saved!r:.40} is no mapping of options")
    return saved
