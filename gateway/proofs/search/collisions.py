"""Captured texts that the functions of a template turn into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.errors import TranslationError
from gateway.routing.template_functions import INTEGER, Levels, TemplateFunction, apply_functions

_MAX_LENGTH = 1_000
_SHORT_TEXTS = ("a", "A", "b", "aa", "ab", "ba", "")


def find_collision(
    functions: Sequence[TemplateFunction], *, single_level: bool
) -> tuple[Levels, Levels] | None:
    """Return two captures with one result; None when no trial finds any."""
    seen: dict[Levels, Levels] = {}
    for levels in _trials(functions, single_level=single_level):
        try:
            made = apply_functions(functions, levels)
        except TranslationError:
            continue
        if made in seen:
            return seen[made], levels
        seen[made] = levels
    return None


def _trials(functions: Sequence[TemplateFunction], *, single_level: bool) -> Iterator[Levels]:
    """Return distinct captures: short ones, and long ones that differ outside a slice."""
    words = [word for function in functions for word in function.arguments]
    numbers = [abs(int(word)) for word in words if INTEGER.fullmatch(word)]
    long = "a" * min(_MAX_LENGTH, 1 + max(numbers, default=0))
    shapes = ("ab", "ac", "cb", long + "b", long + "c", "b" + long, "c" + long)
    joiners = ("", *(word for word in words if not INTEGER.fullmatch(word)))
    texts = [*_SHORT_TEXTS, *(joiner.join(shape) for joiner in joiners for shape in shapes)]
    buckets = max((int(f.arguments[0]) for f in functions if f.name == "bucket"), default=0)
    trials: list[Levels] = [(text,) for text in (*texts, *map(str, range(buckets)))]
    if not single_level:
        trials += [(first, text) for first in "ab" for text in texts]
        trials += [tuple(shape) for shape in shapes]
    return iter(dict.fromkeys(trials))
