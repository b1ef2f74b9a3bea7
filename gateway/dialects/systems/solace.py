"""Solace SMF topics and topic subscriptions: Solace, "SMF Topics"."""

from __future__ import annotations

from gateway.dialects.dialect import NUL_FORBIDDEN, Dialect, WildcardPlacement
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import WildcardExclusions

PAGE = "Solace, SMF Topics"

SMF = Dialect(
    name="smf",
    level_noun="level",
    separator="/",
    any_one="*",
    any_many=">",
    any_many_minimum=1,
    reference=PAGE,
    wildcard_placement=WildcardPlacement.PREFIX,
    empty_levels_in_patterns=False,
    forbidden=NUL_FORBIDDEN,
    exclusions=WildcardExclusions(first_level_prefixes=("$",), whole_levels=("#P2P",)),
    inbox_levels=("#P2P",),
    limits=(
        Limit(Unit.BYTES, 250, PAGE),  # without the terminating NUL
        Limit(Unit.LEVELS, 128, PAGE),
    ),
)
