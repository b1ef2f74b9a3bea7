"""The reason why the hash of a delivered row does not cover the bytes that a driver sends."""

from __future__ import annotations

from typing import Final

# The endpoint writes a payload to the socket byte for byte.
_VERBATIM: Final = frozenset({"mqtt"})
_ENCODINGS: Final = {
    "solace": "the Solace library encodes texts and maps (SDT)",
    "yami4": "a YAMI4 message encodes every payload as parameters",
}
_JMS_ENCODING: Final = "the JMS library encodes texts and maps"


def tap_reason(system: str) -> str:
    """Return why only a tap at a target of `system` proves its payloads unaltered; "" if not.

    A delivered row has the hash of the payload as it was handed to the sink. An alteration by the
    driver after that is visible only where the message arrives. `system` is the column `system`
    of a delivered row. A target with observed rows has its tap.
    """
    return "" if system in _VERBATIM else _ENCODINGS.get(system, _JMS_ENCODING)
