"""IBM MQ topic strings: IBM, "Special characters in topics" (2006)."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, WildcardPlacement
from gateway.dialects.first_character import PrefixMapping, PrefixRule

IBM = Dialect(
    name="ibm",
    level_noun="level",
    separator="/",
    any_one="+",
    any_many="#",
    any_many_minimum=0,  # 'USA/#' matches 'USA' too
    any_many_anywhere=True,
    reference="IBM, Special characters in topics (2006)",
    wildcard_placement=WildcardPlacement.PLAIN,  # 'level#' and '#+' are ordinary levels
    reserved_levels=("+", "#"),
    prefix_rules=(PrefixRule("$", PrefixMapping.SWAP),),
)
