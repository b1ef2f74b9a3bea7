"""W3C Trace Context as text: `traceparent` to its parts and back; it keeps no state.

W3C Trace Context (2021-11-23), section 3.2: version, trace id, parent id and flags in lower-case
hexadecimal digits. A later version may have more behind them, version 00 has not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gateway.model.message import Properties

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
SAMPLED: Final = 0x01  # 3.2.2.5.1: its sender may have recorded it
_SHAPE: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_VERSION: Final = "ff"  # 3.2.2.1: forbidden


@dataclass(frozen=True, slots=True)
class Context:
    """Where a message stands in a trace: 128-bit trace, 64-bit span, and what its sender says."""

    trace: int
    span: int
    sampled: bool
    state: str = ""  # `tracestate`, untouched


def context_of(properties: Properties) -> Context | None:
    """The context among `properties`; None when there is none, or it is no valid one."""
    text = properties.get(TRACEPARENT)
    found = _SHAPE.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[1] == _NO_VERSION or (found[1] == "00" and found[5]):
        return None
    trace, span, flags = (int(found[part], 16) for part in (2, 3, 4))
    if not trace or not span:  # 3.2.2.3 and 3.2.2.4: all zeros is invalid
        return None
    state = properties.get(TRACESTATE)
    return Context(trace, span, bool(flags & SAMPLED), state if isinstance(state, str) else "")


def with_context(properties: Properties, trace: int, span: int) -> Properties:
    """`properties` with the context of a span that is recorded.

    `tracestate` goes on as it came, and goes away when it belonged to no valid context (3.3.1).
    """
    before = context_of(properties)
    kept = {name: value for name, value in properties.items() if before or name != TRACESTATE}
    return {**kept, TRACEPARENT: f"00-{trace:032x}-{span:016x}-{SAMPLED:02x}"}
