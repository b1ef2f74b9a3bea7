"""The origin path: the gateways and brokers that a message has passed, oldest first.

    @3f2a9c81d04e             a broker with a `broker_id`, and the name of the message there
    @77b0e16a93c5:4be1f02c    one that only its gateway knows; then a hash of its address
    plant~9c41d2aa/orders     a gateway with a hash of its identity, and its route

Two brokers may have one address (`localhost`, a name of a container), and one broker may have two.
So without a `broker_id` the identity of the gateway is part of the mark: no other gateway's broker
has the same. The hash of the address serves a question only: is it one broker?

Many messages have the same path, so that encoders and readers keep it with their other headers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from xxhash import xxh3_64_hexdigest

from gateway.dialects.base import Dialect
from gateway.errors import SubjectError, TranslationError
from gateway.routing.tags import parse_tags

_MARK: Final = "@"
_ADDRESS: Final = ":"


@dataclass(frozen=True, slots=True)
class BrokerName:
    """The name of a broker: the `broker_id` that all gateways give it, else its address here.

    One name may stand in several spaces of a broker, as the exchanges of RabbitMQ; `space` is that
    of an endpoint's topics.
    """

    given: str = ""
    address: str = ""
    space: str = ""

    @property
    def address_hash(self) -> str:
        """A short hash of the address, as marks have it; empty where the name is given."""
        return "" if self.given or not self.address else _hash(self.address)[:8]


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """An endpoint, and the hash of its broker's address as marks have it."""

    endpoint: str
    hash: str


NO_BROKER: Final = BrokerName()


@dataclass(frozen=True, slots=True)
class GatewayIdentity:
    """A gateway: its name, and secret random digits that no other gateway has.

    The two instances of a pair have one identity.
    """

    name: str
    id: str = ""

    def entry(self, route: str) -> str:
        """Return the entry of a route in an origin path."""
        return f"{self.prefix}{route}"

    @property
    def prefix(self) -> str:
        """The begin of the entries of all routes."""
        return f"{self.name}~{_hash(self.id)[:8]}/"  # the digits themselves are secret

    def mark(self, broker: BrokerName, name: str, dialect: Dialect, wire: str = "") -> str:
        """Return the entry of a broker and a name there; `wire` is its `wire_name` where known.

        A topic and a queue of one name are two places; queues stand in no space of the broker.
        """
        kind = dialect.find_kind(name)
        place = ("" if kind else broker.space, kind + (wire or wire_name(name, dialect)))
        if broker.given:
            return _MARK + _hash(broker.given, *place)[:12]
        if not broker.address:
            return ""
        own = _hash(self.id, broker.address, *place)[:12]
        return f"{_MARK}{own}{_ADDRESS}{broker.address_hash}"

    def addresses_elsewhere(self, origin: Iterable[str]) -> set[str]:
        """Return the address hashes of the brokers that other gateways read, by `origin`."""
        own = self.prefix
        return {
            mark.rpartition(_ADDRESS)[2]
            for mark, entry in pairwise(origin)
            if mark.startswith(_MARK) and _ADDRESS in mark and not entry.startswith(own)
        }


def wire_name(text: str, dialect: Dialect) -> str:
    """Return the canonical name of `text`: its levels as they are on the wire, by any dialect.

    The kind of destination is not part of it, and a shortened name stays short.
    """
    bare = text[len(dialect.find_kind(text)) :]
    try:
        tags = parse_tags(bare, dialect)
    except (SubjectError, TranslationError):  # a name that only its own system can say
        return bare
    return "\1".join("\0".join(tag.subject.levels) for tag in tags) + "\0"


def _hash(*parts: str) -> str:
    return xxh3_64_hexdigest("\0".join(parts).encode("utf-8", "surrogatepass"))
