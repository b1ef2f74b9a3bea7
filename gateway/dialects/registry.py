"""The seven systems by name."""

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
from gateway.errors import GatewayError, shown

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (EMS, RV, MQTT, IBM, SMF, YAMI4, SMARTSOCKETS)}
)
LONGEST = max(map(len, DIALECTS))


class UnknownSystemError(GatewayError):
    """No dialect has this name; `hint` says which was probably meant."""

    def __init__(self, name: str) -> None:
        close = get_close_matches(name.lower()[: 2 * LONGEST], DIALECTS, n=1)
        known = f"known are {', '.join(DIALECTS)}"
        self.name, self.hint = name, f"did you mean {close[0]!r}?" if close else known
        super().__init__(f"unknown system {shown(name)}; {self.hint}")


def find_dialect(name: str) -> Dialect:
    """The dialect called `name`.

    Raises:
        UnknownSystemError: there is none; the text says which was probably meant.
    """
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownSystemError(name) from None
