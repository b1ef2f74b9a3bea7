"""YAMI4 tags: "Programming Distributed Systems with YAMI4", 7.2.1, and the reference broker."""

from __future__ import annotations

from gateway.dialects.dialect import Dialect, Star
from gateway.dialects.first_character import FirstRule, Turn
from gateway.model.limits import Limit, Unit

BOOK = "Programming Distributed Systems with YAMI4, 7.2.1"

YAMI4 = Dialect(
    name="yami4",
    part="component",
    separator=".",
    any_one="*",
    any_many="*",  # the last character of a tag: all that remains, one character at least
    any_many_minimum=1,
    source=BOOK,
    star=Star.TAG,
    forbidden=",\0",  # a comma ends a tag, a NUL the whole list
    first=(FirstRule("$", Turn.SWAP),),
    tag_lists=True,
    advised=(Limit(Unit.BYTES, 200, "declared and not enforced by the reference broker"),),
)
