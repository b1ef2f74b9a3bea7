"""Names, patterns and templates that are written with the separator of another system."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from gateway.dialects.base import Dialect, parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.errors import SubjectError, TranslationError
from gateway.routing.route import Route

_ORDINARY: Final = "."  # also within a level: in versions, hosts and files
_BRACES: Final = re.compile(r"\{[^{}]*\}")
_MASK: Final = "\ue000"


def corrected(text: str, dialect: Dialect) -> str:
    """Return `text` as `dialect` would spell it, when another system spells it so; else "".

    A text with a separator of its own is taken as it is meant, and so are a queue and a single
    level with a full stop and without captures and wildcards.
    """
    masked = _BRACES.sub(_MASK, text).removeprefix(dialect.leading)
    own = dialect.separator
    if dialect.find_kind(text) or own in masked:
        return ""
    others = {each.separator for each in DIALECTS.values()} - {own}
    found = [separator for separator in others if separator in masked]
    if len(found) != 1:
        return ""
    levels = masked.strip(found[0]).split(found[0])
    ones = {each.any_one for each in DIALECTS.values()}
    rests = {each.any_many for each in DIALECTS.values()} - ones
    if found[0] == _ORDINARY and _MASK not in masked and (ones | rests).isdisjoint(levels):
        return ""
    wildcards = dict.fromkeys(ones, dialect.any_one) | dict.fromkeys(rests, dialect.any_many)
    spelled = [wildcards.get(level, level) for level in levels]
    braces = iter(_BRACES.findall(text))
    return dialect.leading + re.sub(_MASK, lambda _: next(braces), own.join(spelled))


def respelled(name: str, routes: Iterable[Route]) -> str:
    """Return a name that no route takes as a route with another separator takes it; else ""."""
    for route in routes:
        own = route.dialect.separator
        for other in sorted({each.separator for each in DIALECTS.values()} - {own}):
            better = name.replace(other, own)
            with suppress(SubjectError, TranslationError):
                if better != name and route.takes(parse_subject(better, route.dialect).levels):
                    return better
    return ""


def separator_question(name: str, routes: Iterable[Route]) -> str:
    """Return the question whether `respelled` was meant; "" where it finds nothing."""
    better = respelled(name, routes)
    return better and f"did you mean {better!r}, with the separator of its system?"
