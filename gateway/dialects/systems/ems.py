"""TIBCO EMS destination names: TIBCO EMS User's Guide, "Destination Name Syntax", "Wildcards"."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, wildcards_forbidden
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import WildcardExclusions

GUIDE = "TIBCO EMS User's Guide, Destination Name Syntax"

EMS = Dialect(
    name="ems",
    level_noun="element",
    separator=".",
    any_one="*",
    any_many=">",
    any_many_minimum=1,  # 'foo.>' takes one or more trailing elements
    reference=GUIDE,
    empty_levels=False,
    empty_levels_in_patterns=False,
    forbidden=wildcards_forbidden("*>"),  # "Naming Conventions"
    exclusions=WildcardExclusions(  # "Monitoring Messages": '>' does not match $sys.monitor
        first_level_prefixes=("$",)
    ),
    prefix_rules=(PrefixRule("$", PrefixMapping.SHIFT, reserved=("$sys",), reply_only=("$TMP$",)),),
    warn_unprintable=True,
    limits=(
        Limit(Unit.CHARACTERS, 249, GUIDE, reserve=53, reserve_levels=64),  # 196 at 64 elements
        Limit(Unit.LEVELS, 64, GUIDE),
        Limit(Unit.LEVEL_CHARACTERS, 127, GUIDE),
    ),
)
