"""TIBCO SmartSockets subjects: TIBCO EMS User's Guide, "Working With TIBCO SmartSockets"."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, WildcardPlacement, wildcards_forbidden
from gateway.dialects.first_character import PrefixMapping, PrefixRule

SMARTSOCKETS = Dialect(
    name="smartsockets",
    level_noun="token",
    separator="/",
    leading="/",
    any_one="*",
    any_many="...",
    any_many_minimum=1,
    reference="TIBCO EMS User's Guide, Destination Name Syntax and Semantics (SmartSockets)",
    wildcard_placement=WildcardPlacement.INNER,
    empty_levels=False,
    empty_levels_in_patterns=False,
    forbidden=wildcards_forbidden("*"),
    reserved_levels=("...",),
    swapped_characters="./",
    prefix_rules=(PrefixRule("$", PrefixMapping.SWAP),),
)
