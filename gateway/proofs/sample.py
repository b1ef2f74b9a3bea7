"""A plain name for a flow, and whether its target refuses every name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gateway.model.pattern import AnyMany, AnyOne, Literal, Pattern
from gateway.proofs.finding import Finding
from gateway.proofs.forms import Flow, cuts_of
from gateway.proofs.solve import Bound, with_bound
from gateway.proofs.trial import trial_names
from gateway.proofs.witness import Refused, Sent, attempt
from gateway.proofs.words import example
from gateway.routing.collisions import colliding

DEEPER = 2  # levels
TRIALS = 40
OPEN = frozenset({"not-allowed", "missing-part"})  # rules that other names may well keep
HINT = "change the fixed part of the template, or remove the target"


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
