"""What a made name does not tell of its source name, by the template alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.model.pattern import Literal
from gateway.proofs.flows.flow import Cut, Flow, Part, Seq, Var, cuts_of
from gateway.proofs.rules.ambiguity import divided_twice


@dataclass(frozen=True, slots=True)
class Loss:
    """What is lost, by its cause.

    `unused` are the unknowns that stand nowhere in the made name, `unclear` its levels whose
    parts run together, `cuts` the calls of functions that lose something.
    """

    unused: tuple[int, ...] = ()
    unclear: tuple[tuple[Part, ...], ...] = ()
    cuts: tuple[Cut, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unused or self.unclear or self.cuts)


def loss_of(flow: Flow) -> Loss:
    """What is lost; nothing is a proof that names stay apart, whatever publishers send."""
    wild = {at for at, level in enumerate(flow.pattern.levels) if not isinstance(level, Literal)}
    if flow.keeps or (known := _told(flow)) >= wild:
        return Loss()
    cuts = tuple(cut for cut in cuts_of(flow) if not known.issuperset(cut.places))
    unclear = tuple(level for level in _levels(flow) if len(_unknown(level, known)) > 1)
    return Loss(tuple(sorted(wild - _shown(flow))), unclear, cuts)


def _levels(flow: Flow) -> list[tuple[Part, ...]]:
    return [level for level in flow.made if isinstance(level, tuple)]


def _shown(flow: Flow) -> set[int]:
    """The unknowns that the made name holds, or something of them."""
    whole = {level.at for level in flow.made if isinstance(level, Seq)}
    whole |= {part.at for level in _levels(flow) for part in level if isinstance(part, Var)}
    return whole | {at for cut in cuts_of(flow) for at in cut.places}


def _told(flow: Flow) -> set[int]:
    """The unknowns that the made name tells, whatever they are.

    Levels can be counted off when one rest wildcard at most has an unknown length: then a level
    with one unknown tells it, and a level with more when no text divides in two ways.
    """
    known = {level.at for level in flow.made if isinstance(level, Seq)}
    if len(known) > 1 or any(isinstance(level, Cut) for level in flow.made):
        return set()
    grown = True
    while grown:
        before = len(known)
        for level in _levels(flow):
            unknown = _unknown(level, known)
            if len(unknown) == 1 or (unknown and divided_twice(level, flow.pattern) is None):
                known |= {part.at for part in unknown if isinstance(part, Var)}
        grown = len(known) > before
    return known


def _unknown(level: Sequence[Part], known: set[int]) -> list[Part]:
    found = [
        part
        for part in level
        if (isinstance(part, Var) and part.at not in known)
        or (isinstance(part, Cut) and not known.issuperset(part.places))
    ]
    return list(dict.fromkeys(found))
