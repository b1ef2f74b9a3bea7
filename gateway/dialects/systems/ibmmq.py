"""IBM MQ topic strings: IBM, "Special characters in topics" (2006)."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, Star
from gateway.dialects.first_character import FirstRule, Turn

IBM = Dialect(
    name="ibm",
    part="level",
    separator="/",
    any_one="+",
    any_many="#",
    any_many_minimum=0,  # 'USA/#' takes 'USA' too
    any_many_anywhere=True,
    source="IBM, Special characters in topics (2006)",
    star=Star.PLAIN,  # 'level#' and '#+' are ordinary levels
    whole=("+", "#"),
    first=(FirstRule("$", Turn.SWAP),),
)
