"""The loss of a template: the variables that the target name does not determine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.model.pattern import Literal
from gateway.proofs.flows.flow import (
    Flow,
    LevelVariable,
    LossyCall,
    Part,
    RestVariable,
    lossy_calls,
)
from gateway.proofs.rules.ambiguity import ambiguous_texts


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a template, by cause.

    `unused` are the positions of variables that stand nowhere in the target name, `ambiguous` its
    levels whose parts have no certain boundaries, `calls` the calls of functions that are not
    injective.
    """

    unused: tuple[int, ...] = ()
    ambiguous: tuple[tuple[Part, ...], ...] = ()
    calls: tuple[LossyCall, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unused or self.ambiguous or self.calls)


def loss_of(flow: Flow) -> Loss:
    """Return the loss of a flow; no loss is a proof that distinct names stay distinct."""
    wild = {at for at, level in enumerate(flow.pattern.levels) if not isinstance(level, Literal)}
    if flow.keeps_name or (known := _determined(flow)) >= wild:
        return Loss()
    calls = tuple(call for call in lossy_calls(flow) if not known.issuperset(call.positions))
    ambiguous = tuple(level for level in _levels(flow) if len(_unknown(level, known)) > 1)
    return Loss(tuple(sorted(wild - _shown(flow))), ambiguous, calls)


def _levels(flow: Flow) -> list[tuple[Part, ...]]:
    return [level for level in flow.target_levels if isinstance(level, tuple)]


def _shown(flow: Flow) -> set[int]:
    """Return the variables that the target name holds, whole or in part."""
    whole = {level.position for level in flow.target_levels if isinstance(level, RestVariable)}
    whole |= {
        part.position
        for level in _levels(flow)
        for part in level
        if isinstance(part, LevelVariable)
    }
    return whole | {at for call in lossy_calls(flow) for at in call.positions}


def _determined(flow: Flow) -> set[int]:
    """Return the variables that the target name determines for every value.

    Levels have certain positions when at most one rest wildcard has an unknown length. A level then
    determines its variable; a level with several determines them when no text divides in two ways.
    """
    known = {level.position for level in flow.target_levels if isinstance(level, RestVariable)}
    if len(known) > 1 or any(isinstance(level, LossyCall) for level in flow.target_levels):
        return set()
    grown = True
    while grown:
        before = len(known)
        for level in _levels(flow):
            unknown = _unknown(level, known)
            if len(unknown) == 1 or (unknown and ambiguous_texts(level, flow.pattern) is None):
                known |= {part.position for part in unknown if isinstance(part, LevelVariable)}
        grown = len(known) > before
    return known


def _unknown(level: Sequence[Part], known: set[int]) -> list[Part]:
    found = [
        part
        for part in level
        if (isinstance(part, LevelVariable) and part.position not in known)
        or (isinstance(part, LossyCall) and not known.issuperset(part.positions))
    ]
    return list(dict.fromkeys(found))
