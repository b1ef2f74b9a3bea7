"""A plain name for a flow, and whether its target refuses every name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import TypeAlias

from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.proofs.finding import Finding
from gateway.proofs.flows.flow import Flow, cuts_of
from gateway.proofs.rules.collisions import colliding
from gateway.proofs.search.equations import Bound, with_bound
from gateway.proofs.search.examples import example
from gateway.proofs.search.witness import Refused, Sent, attempt, sent

DEEPER = 2  # levels
TRIALS = 40
OPEN = frozenset({"not-allowed", "missing-part"})  # rules that other names may well keep
MAX_NAMES = 400
PLAIN = ("x", "y", "X", "xx", "")  # the texts of trial names
HINT = "change the fixed part of the template, or remove the target"

Names: TypeAlias = tuple[str, ...]


def dealt(places: tuple[int, ...], levels: tuple[str, ...]) -> Bound:
    """A level for each place, the last one takes the rest."""
    last = len(places) - 1
    groups = {at: levels[number : number + 1] for number, at in enumerate(places[:-1])}
    groups[places[-1]] = levels[last:]
    return {at: tuple(map(Literal, texts)) for at, texts in groups.items()}


def sample(flow: Flow) -> Sent | None:
    """A short and plain name that the target takes, None when it refuses all that are tried."""
    found = (attempt(flow.site.route, flow.target, levels) for levels in _variety(flow))
    return next((each for each in found if isinstance(each, Sent)), None)


def never_sent(flow: Flow) -> Finding | None:
    """That the target refuses all names, of a flow without a `sample`.

    Short and plain ones are tried, longer ones, and such that functions find what they ask for;
    what refuses all of them lies in the fixed part. A name outside of `allow` tells nothing.
    """
    found = [attempt(flow.site.route, flow.target, levels) for levels in _variety(flow)]
    refused = [each for each in found if isinstance(each, Refused)]
    if not refused or any(each.error.rule in OPEN for each in refused):
        return None
    name, error = refused[0].name, refused[0].error
    text = f"no name can be sent to {flow.target.endpoint!r}: {name!r} is refused ({error})"
    return flow.site.finding("never-sent", "error", text, HINT, (name,), target=flow.place)


def _variety(flow: Flow) -> Iterator[tuple[str, ...]]:
    """Names that the route takes, the plainest first."""
    excludes = flow.site.excludes
    shortest = example([[flow.pattern]], excludes)
    if shortest is None:
        return
    yield shortest
    for more in range(1, DEEPER + 1):
        deep = Pattern((*[AnyOne()] * (len(shortest) + more), AnyMany(0)))
        if (levels := example([[flow.pattern], [deep]], excludes)) is not None:
            yield levels
    for cut in cuts_of(flow):
        found = colliding(cut.functions, one=cut.one)
        if found is not None and cut.places:
            pattern = with_bound(flow.pattern, dealt(cut.places, found[0]))
            if (levels := example([[pattern]], excludes)) is not None:
                yield levels
    yield from islice(trial_names(flow), TRIALS)


def trial_names(flow: Flow, most: int = MAX_NAMES) -> Iterator[tuple[str, ...]]:
    """Names that the pattern takes, the plain ones first; excluded ones too."""
    texts = _texts(flow)
    groups = (_group(level, texts) for level in flow.pattern.levels)
    names = (sum(each, ()) for each in islice(product(*groups), most))
    return (name for name in names if name)


class Trials:
    """What trial names become, by flow. Mutable: a flow is tried once and remembered."""

    def __init__(self) -> None:
        self._known: dict[Flow, dict[Names, list[Names]]] = {}

    def of(self, flow: Flow) -> Mapping[Names, Sequence[Names]]:
        """The names by what they become."""
        if flow not in self._known:
            found: dict[Names, list[Names]] = {}
            for levels in trial_names(flow):
                if (made := sent(flow, levels)) is not None:
                    found.setdefault(made.arrived, []).append(levels)
            self._known[flow] = found
        return self._known[flow]


def _texts(flow: Flow) -> Sequence[str]:
    """Small texts, and such that hold what functions and templates look for."""
    words = [word for cut in cuts_of(flow) for call in cut.functions for word in call.arguments]
    words += [
        part
        for level in flow.made
        if isinstance(level, tuple) and len(level) > 1
        for part in level
        if isinstance(part, str)
    ]
    starts = [
        level.parts[0] * times
        for level in flow.pattern.levels
        if isinstance(level, Glob) and level.parts[0]
        for times in (1, 2)
    ]
    special = [text for word in words if word for text in (f"x{word}x", f"x{word}y", f"{word}x")]
    fixed = [level.text for level in flow.pattern.levels if isinstance(level, Literal)]
    return tuple(dict.fromkeys((*PLAIN, *starts, *special, *fixed)))


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
