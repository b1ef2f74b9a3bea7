"""Solace SMF topics and topic subscriptions: Solace, "SMF Topics"."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, Star
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import Shy

PAGE = "Solace, SMF Topics"

SMF = Dialect(
    name="smf",
    part="level",
    separator="/",
    any_one="*",
    any_many=">",
    any_many_minimum=1,
    source=PAGE,
    star=Star.PREFIX,
    empty_in_patterns=False,
    forbidden="\0",
    shy=Shy(first=("$",), anywhere=("#P2P",)),
    inboxes=("#P2P",),
    limits=(
        Limit(Unit.BYTES, 250, PAGE),  # the terminating NUL not counted
        Limit(Unit.LEVELS, 128, PAGE),
    ),
)
