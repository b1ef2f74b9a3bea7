"""The registry of dialects by the name of their system."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from gateway.dialects.dialect import Dialect
from gateway.dialects.systems.ems import EMS
from gateway.dialects.systems.ibmmq import IBM
from gateway.dialects.systems.mqtt import MQTT
from gateway.dialects.systems.rendezvous import RV
from gateway.dialects.systems.smartsockets import SMARTSOCKETS
from gateway.dialects.systems.solace import SMF
from gateway.dialects.systems.yami4 import YAMI4
from gateway.errors import GatewayError, quoted

_registered = {dialect.name: dialect for dialect in (EMS, RV, MQTT, IBM, SMF, YAMI4, SMARTSOCKETS)}
DIALECTS: Mapping[str, Dialect] = MappingProxyType(_registered)  # a live view of the registry


class UnknownSystemError(GatewayError):
    """No dialect has this name; `hint` suggests the nearest one."""

    def __init__(self, name: str) -> None:
        longest = max(map(len, DIALECTS))
        close = get_close_matches(name.lower()[: 2 * longest], DIALECTS, n=1)
        known = f"known are {', '.join(DIALECTS)}"
        self.name, self.hint = name, f"did you mean {close[0]!r}?" if close else known
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


def register(dialect: Dialect) -> None:
    """Add a system. Modules read `DIALECTS` when they need it, so the system exists at once.

    Raises:
        GatewayError: the name is already registered.
    """
    if dialect.name in _registered:
        raise GatewayError(f"{dialect.name}: this system is already registered")
    _registered[dialect.name] = dialect


def unregister(name: str) -> None:
    """Remove a system that `register` added.

    Raises:
        UnknownSystemError: no dialect has this name.
    """
    find_dialect(name)
    del _registered[name]
