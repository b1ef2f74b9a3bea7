"""MQTT topic names and filters: OASIS MQTT 3.1.1 and 5.0, section 4.7."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import Shy

MQTT = Dialect(
    name="mqtt",
    part="level",
    separator="/",
    any_one="+",
    any_many="#",
    any_many_minimum=0,  # 4.7.1.2: 'sport/#' also selects 'sport'
    source="OASIS MQTT 5.0, 4.7",
    forbidden="+#\0",  # 4.7.1: no wildcards in a topic name; 4.7.3: no U+0000
    shy=Shy(first=("$",)),  # 4.7.2
    unused_first=("$share",),  # 4.8.2: a shared subscription, not a level
    limits=(Limit(Unit.BYTES, 65_535, "OASIS MQTT 5.0, 4.7.3"),),
)
