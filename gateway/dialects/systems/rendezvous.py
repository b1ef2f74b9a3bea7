"""TIBCO Rendezvous subjects: TIBCO Adapter SDK, "Subject Names"."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, wildcards_forbidden
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.model.limits import Limit, Unit

SDK = "TIBCO Adapter SDK, Subject Names"
SUPPORT = "TIBCO support page on Rendezvous subject names"

RV = Dialect(
    name="rv",
    level_noun="element",
    separator=".",
    any_one="*",
    any_many=">",
    any_many_minimum=1,
    reference=SDK,
    empty_levels=False,
    empty_levels_in_patterns=False,
    forbidden=wildcards_forbidden("*>"),
    prefix_rules=(
        PrefixRule(
            "_", PrefixMapping.SHIFT, ordinary=("_INBOX",), reserved=("_RV",), local=("_LOCAL",)
        ),
        PrefixRule("$", PrefixMapping.SWAP),
    ),
    warn_unprintable=True,
    limits=(
        Limit(Unit.CHARACTERS, 255, SDK),
        Limit(Unit.LEVEL_CHARACTERS, 252, SDK),
    ),
    advised_limits=(
        Limit(Unit.CHARACTERS, 196, SUPPORT, reserve=1, reserve_levels=1),
        Limit(Unit.LEVEL_CHARACTERS, 127, SUPPORT),
        Limit(Unit.LEVELS, 100, SUPPORT),
    ),
)
