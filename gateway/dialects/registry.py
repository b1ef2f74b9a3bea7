"""The registry of dialects by the name of their system."""

from __future__ import annotations

from typing import Final

from gateway.dialects.dialect import Dialect
from gateway.dialects.parts import BOUNDARY
from gateway.dialects.products import dialect_hint
from gateway.dialects.systems.ems import EMS
from gateway.dialects.systems.ibmmq import IBM
from gateway.dialects.systems.kafka import KAFKA
from gateway.dialects.systems.mqtt import MQTT
from gateway.dialects.systems.nats import NATS
from gateway.dialects.systems.rabbitmq import RABBITMQ
from gateway.dialects.systems.rendezvous import RV
from gateway.dialects.systems.smartsockets import SMARTSOCKETS
from gateway.dialects.systems.solace import SMF
from gateway.dialects.systems.yami4 import YAMI4
from gateway.errors import GatewayError, nearest, quoted
from gateway.registry import Registry


def check(dialect: Dialect) -> None:
    """Raise ValueError for a dialect that no name can have."""
    if len(dialect.separator) != 1:
        raise ValueError(f"the separator {dialect.separator!r} is not one character")
    _ = dialect.codec  # it can be made
    if (key := dialect.key) is not None:
        if BOUNDARY in dialect.topic.codec.encode([BOUNDARY])[0]:
            raise ValueError(f"a topic takes {BOUNDARY!r}, which ends it")
        signs = [(each.separator, each.any_one, each.any_many) for each in (dialect, key)]
        if len(set(signs)) > 1:
            raise ValueError("topic and key differ in their separator or their wildcards")


_OWN: Final = (EMS, RV, MQTT, IBM, SMF, YAMI4, SMARTSOCKETS, NATS, RABBITMQ, KAFKA)
DIALECTS: Final = Registry("gateway.dialects", Dialect, _OWN, check)


class UnknownSystemError(GatewayError):
    """No dialect has this name; `hint` suggests the nearest one."""

    rule = "unknown-system"

    def __init__(self, name: str) -> None:
        longest = max(map(len, DIALECTS))
        self.name = name
        near = nearest(name.lower()[: 2 * longest], DIALECTS)
        self.hint = DIALECTS.fault_of(name) or dialect_hint(name) or near
        super().__init__(f"unknown system {quoted(name)}; {self.hint}")


def find_dialect(name: str) -> Dialect:
    """Return the dialect called `name`.

    Raises:
        UnknownSystemError: no dialect has this name; the text suggests the nearest one.
    """
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownSystemError(name) from None
