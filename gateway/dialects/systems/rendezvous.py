"""TIBCO Rendezvous subjects: TIBCO Adapter SDK, "Subject Names"."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect
from gateway.dialects.first_character import FirstRule, Turn
from gateway.model.limits import Limit, Unit

SDK = "TIBCO Adapter SDK, Subject Names"
SUPPORT = "TIBCO support page on Rendezvous subject names"

RV = Dialect(
    name="rv",
    part="element",
    separator=".",
    any_one="*",
    any_many=">",
    any_many_minimum=1,
    source=SDK,
    empty_levels=False,
    empty_in_patterns=False,
    forbidden="*>",
    first=(
        FirstRule("_", Turn.SHIFT, kept=("_INBOX",), reserved=("_RV",), local=("_LOCAL",)),
        FirstRule("$", Turn.SWAP),
    ),
    limits=(
        Limit(Unit.CHARACTERS, 255, SDK),
        Limit(Unit.LEVEL_CHARACTERS, 252, SDK),
    ),
    advised=(
        Limit(Unit.CHARACTERS, 196, SUPPORT, reserve=1, at=1),
        Limit(Unit.LEVEL_CHARACTERS, 127, SUPPORT),
        Limit(Unit.LEVELS, 100, SUPPORT),
    ),
)
