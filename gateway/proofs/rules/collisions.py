"""Two captures that the functions of a template make one, as an example for a person; by trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.errors import TranslationError
from gateway.routing.functions import NUMBER, Function, Levels, run_all

_DEEPEST = 1_000
_TRIALS = ("a", "A", "b", "aa", "ab", "ba", "")


def colliding(functions: Sequence[Function], *, one: bool) -> tuple[Levels, Levels] | None:
    """Two captures that these functions make one, found by trial; None when no trial shows any."""
    seen: dict[Levels, Levels] = {}
    for levels in _trials(functions, one=one):
        try:
            made = run_all(functions, levels)
        except TranslationError:
            continue
        if made in seen:
            return seen[made], levels
        seen[made] = levels
    return None


def _trials(functions: Sequence[Function], *, one: bool) -> Iterator[Levels]:
    """Different captures: short ones, and such that differ where the arguments do not look."""
    words = [word for function in functions for word in function.arguments]
    numbers = [abs(int(word)) for word in words if NUMBER.fullmatch(word)]
    deep = "a" * min(_DEEPEST, 1 + max(numbers, default=0))
    shapes = ("ab", "ac", "cb", deep + "b", deep + "c", "b" + deep, "c" + deep)
    joiners = ("", *(word for word in words if not NUMBER.fullmatch(word)))
    texts = [*_TRIALS, *(joiner.join(shape) for joiner in joiners for shape in shapes)]
    buckets = max((int(f.arguments[0]) for f in functions if f.name == "bucket"), default=0)
    trials: list[Levels] = [(text,) for text in (*texts, *map(str, range(buckets)))]
    if not one:
        trials += [(first, text) for first in "ab" for text in texts]
        trials += [tuple(shape) for shape in shapes]
    return iter(dict.fromkeys(trials))
