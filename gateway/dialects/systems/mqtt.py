"""MQTT topic names and filters: OASIS MQTT 3.1.1 and 5.0, section 4.7."""

from __future__ import annotations

from gateway.dialects.dialect import NUL_FORBIDDEN, Dialect, wildcards_forbidden
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import WildcardExclusions

MQTT = Dialect(
    name="mqtt",
    level_noun="level",
    separator="/",
    any_one="+",
    any_many="#",
    any_many_minimum=0,  # 4.7.1.2: 'sport/#' also selects 'sport'
    reference="OASIS MQTT 5.0, 4.7",
    forbidden={**wildcards_forbidden("+#"), **NUL_FORBIDDEN},  # 4.7.1 and 4.7.3
    exclusions=WildcardExclusions(first_level_prefixes=("$",)),  # 4.7.2
    shared_prefix="$share/",  # 4.8.2
    refuses_closing=True,  # 1.5.4
    server_levels=("$SYS", "$CONTROL", "$share"),  # mosquitto 2.0 acknowledges and drops these
    limits=(Limit(Unit.BYTES, 65_535, "OASIS MQTT 5.0, 4.7.3"),),
)
