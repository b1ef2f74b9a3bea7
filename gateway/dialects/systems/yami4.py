"""YAMI4 tags: "Programming Distributed Systems with YAMI4", 7.2.1, and the reference broker."""

from __future__ import annotations

from gateway.dialects.dialect import NUL_FORBIDDEN, Dialect, Prohibition, WildcardPlacement
from gateway.dialects.first_character import PrefixMapping, PrefixRule
from gateway.model.dead_letter_rule import TAG_LIST
from gateway.model.limits import Limit, Unit

BOOK = "Programming Distributed Systems with YAMI4, 7.2.1"

YAMI4 = Dialect(
    name="yami4",
    level_noun="component",
    separator=".",
    any_one="*",
    any_many="*",  # the last character of a tag: the remaining text, at least one character
    any_many_minimum=1,
    reference=BOOK,
    wildcard_placement=WildcardPlacement.TAG,
    forbidden={
        ",": Prohibition(TAG_LIST, "a comma separates tags, and this is one name"),
        **NUL_FORBIDDEN,  # the broker would cut the tag list there
    },
    prefix_rules=(PrefixRule("$", PrefixMapping.SWAP),),
    tag_lists=True,
    advised_limits=(Limit(Unit.BYTES, 200, "declared and not enforced by the reference broker"),),
)
