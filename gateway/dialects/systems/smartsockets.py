"""TIBCO SmartSockets subjects: TIBCO EMS User's Guide, "Working With TIBCO SmartSockets"."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, Star
from gateway.dialects.first_character import FirstRule, Turn

SMARTSOCKETS = Dialect(
    name="smartsockets",
    part="token",
    separator="/",
    leading="/",
    any_one="*",
    any_many="...",
    any_many_minimum=1,
    source="TIBCO EMS User's Guide, Destination Name Syntax and Semantics (SmartSockets)",
    star=Star.INNER,
    empty_levels=False,
    empty_in_patterns=False,
    forbidden="*",
    whole=("...",),
    traded="./",  # slash and dot change places as ordinary characters
    first=(FirstRule("$", Turn.SWAP),),
)
