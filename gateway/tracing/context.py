"""The trace of a message: W3C Trace Context, which it parses and writes, and the trace id.

W3C Trace Context (2021-11-23), section 3.2: version, trace id, parent id and flags in lower-case
hexadecimal digits. Further fields may follow in later versions, and never in version 00.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gateway.model.message import GATEWAY_TRACE, Properties

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
SAMPLED: Final = 0x01  # 3.2.2.5.1: the sender may have recorded it
_FORMAT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_FORBIDDEN_VERSION: Final = "ff"  # 3.2.2.1
_TRACE: Final = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The place of a message in a trace: 128-bit trace id, 64-bit parent span id, flag, state."""

    trace: int
    span: int
    sampled: bool
    state: str = ""  # `tracestate`, unchanged


def context_of(properties: Properties) -> TraceContext | None:
    """The trace context in `properties`; None if it is absent or invalid."""
    text = properties.get(TRACEPARENT)
    found = _FORMAT.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[1] == _FORBIDDEN_VERSION or (found[1] == "00" and found[5]):
        return None
    trace, span, flags = (int(found[part], 16) for part in (2, 3, 4))
    if not trace or not span:  # 3.2.2.3 and 3.2.2.4: all zeros is invalid
        return None
    state = properties.get(TRACESTATE)
    return TraceContext(trace, span, bool(flags & SAMPLED), state if isinstance(state, str) else "")


def trace_of(properties: Properties) -> bytes | None:
    """The trace id of a received message, 16 bytes: from a gateway before, else from its publisher.

    None if it carries none: its id at this gateway is its trace id.
    """
    given = properties.get(GATEWAY_TRACE)
    if isinstance(given, str) and _TRACE.fullmatch(given):
        return bytes.fromhex(given)
    context = context_of(properties)
    return None if context is None else context.trace.to_bytes(16, "big")


def with_context(properties: Properties, trace: int, span: int) -> Properties:
    """`properties` with the context of a recorded span.

    `tracestate` is kept, or removed if `properties` had no valid context (3.3.1).
    """
    before = context_of(properties)
    kept = {name: value for name, value in properties.items() if before or name != TRACESTATE}
    return {**kept, TRACEPARENT: f"00-{trace:032x}-{span:016x}-{SAMPLED:02x}"}
