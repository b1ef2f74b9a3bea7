"""TIBCO EMS destination names: TIBCO EMS User's Guide, "Destination Name Syntax", "Wildcards"."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect
from gateway.dialects.first_character import FirstRule, Turn
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import Shy

GUIDE = "TIBCO EMS User's Guide, Destination Name Syntax"

EMS = Dialect(
    name="ems",
    part="element",
    separator=".",
    any_one="*",
    any_many=">",
    any_many_minimum=1,  # 'foo.>' takes one or more trailing elements
    source=GUIDE,
    empty_levels=False,
    empty_in_patterns=False,
    forbidden="*>",  # "Naming Conventions": not in names except as wildcards
    shy=Shy(first=("$",)),  # "Monitoring Messages": '>' does not reach $sys.monitor
    first=(FirstRule("$", Turn.SHIFT, reserved=("$sys",), answered=("$TMP$",)),),
    limits=(
        Limit(Unit.CHARACTERS, 249, GUIDE, reserve=53, at=64),  # 196 are left at 64 elements
        Limit(Unit.LEVELS, 64, GUIDE),
        Limit(Unit.LEVEL_CHARACTERS, 127, GUIDE),
    ),
)
