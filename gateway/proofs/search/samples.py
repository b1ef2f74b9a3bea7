"""Sample names of a flow, and their translations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.collisions import find_collision
from gateway.proofs.search.equations import Bindings, bind, source_patterns
from gateway.proofs.search.examples import find_example, names_of
from gateway.proofs.search.translated_name import (
    RefusedName,
    TranslatedName,
    translate_by_flow,
    translate_name,
)
from gateway.routing.template_functions import Levels

MAX_EXTRA_LEVELS = 2
MAX_TRIALS = 40
MAX_NAMES = 400
PLAIN_TEXTS = ("x", "y", "X", "xx", "")  # the levels of trial names


def translate_towards(flow: Flow, goal: Pattern) -> Iterator[TranslatedName | RefusedName]:
    """Translate source names whose target names may match `goal`, in the canonical form.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    for levels in names_of(flow, source_patterns(flow, goal)):
        if (found := translate_name(flow.source.route, flow.target, levels, [goal])) is not None:
            yield found


def bind_levels(positions: tuple[int, ...], levels: tuple[str, ...]) -> Bindings:
    """Bind one level to each variable, and the rest to the last."""
    last = len(positions) - 1
    groups = [*((text,) for text in levels[:last]), levels[last:]]
    return {at: tuple(map(Literal, texts)) for at, texts in zip(positions, groups, strict=False)}


def sendable_name(flow: Flow) -> TranslatedName | None:
    """Return a short and plain name that the target accepts; None when it refuses all samples."""
    found = (
        translate_name(flow.source.route, flow.target, levels) for levels in varied_names(flow)
    )
    return next((each for each in found if isinstance(each, TranslatedName)), None)


def varied_names(flow: Flow) -> Iterator[tuple[str, ...]]:
    """Yield names that the route takes, the plainest first."""
    excludes = flow.source.excludes
    shortest = find_example([[flow.pattern]], excludes)
    if shortest is None:
        return
    yield shortest
    for more in range(1, MAX_EXTRA_LEVELS + 1):
        deep = Pattern((*[AnyOne()] * (len(shortest) + more), AnyMany(0)))
        if (levels := find_example([[flow.pattern], [deep]], excludes)) is not None:
            yield levels
    for call in flow.lossy_calls:
        found = find_collision(call.functions, single_level=call.single_level)
        if found is not None and call.positions:
            pattern = bind(flow.pattern, bind_levels(call.positions, found[0]))
            yield from names_of(flow, [pattern])
    yield from islice(trial_names(flow), MAX_TRIALS)


def trial_names(flow: Flow, limit: int = MAX_NAMES) -> Iterator[tuple[str, ...]]:
    """Yield names that the pattern matches, the plain ones first; some may be excluded."""
    texts = _texts(flow)
    groups = (_group(level, texts) for level in flow.pattern.levels)
    names = (sum(each, ()) for each in islice(product(*groups), limit))
    return (name for name in names if name)


def translated_trials(flow: Flow) -> dict[Levels, list[Levels]]:
    """Return the trial names of a flow by their target levels."""
    found: dict[Levels, list[Levels]] = {}
    for levels in trial_names(flow):
        if (made := translate_by_flow(flow, levels)) is not None:
            found.setdefault(made.target_levels, []).append(levels)
    return found


def _texts(flow: Flow) -> Sequence[str]:
    """Return short texts, and texts with the arguments of functions and the texts of templates."""
    functions = [function for call in flow.lossy_calls for function in call.functions]
    words = [word for function in functions for word in function.arguments]
    mixed = [x for x in flow.target_levels if isinstance(x, tuple) and len(x) > 1]
    words += [part for level in mixed for part in level if isinstance(part, str)]
    starts = [
        level.parts[0] * times
        for level in flow.pattern.levels
        if isinstance(level, Glob) and level.parts[0]
        for times in (1, 2)
    ]
    special = [text for word in words if word for text in (f"x{word}x", f"x{word}y", f"{word}x")]
    fixed = [level.text for level in flow.pattern.levels if isinstance(level, Literal)]
    return tuple(dict.fromkeys((*PLAIN_TEXTS, *starts, *special, *fixed)))


def _group(level: Level, texts: Sequence[str]) -> list[tuple[str, ...]]:
    match level:
        case Literal(text):
            return [(text,)]
        case AnyOne():
            return [(text,) for text in texts]
        case Glob():
            first, *others = level.parts
            return [(first + text + "".join(others),) for text in texts]
        case AnyMany(minimum):
            none: list[tuple[str, ...]] = [] if minimum else [()]
            ones = [(text,) for text in texts]
            return [*ones[:2], ("x", "y"), *none, *ones[2:], ("x", "x"), ("y", "x")]
