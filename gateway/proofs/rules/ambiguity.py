"""Decide exactly whether a text of one target level divides among its parts in two ways.

The parts in a row are an automaton over characters. Two runs of it over one text, side by side,
find a text that divides in two ways, or prove that there is none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from gateway.model.pattern import Glob, Pattern
from gateway.proofs.budget import spend
from gateway.proofs.flows.flow import LevelVariable, Part

OTHER_CHARACTER = "x"

_Owners: TypeAlias = tuple[int, ...]  # for each character the index of its part


@dataclass(frozen=True, slots=True)
class _Step:
    """One character of part `owner`: any when `text` is empty; with `loop` a run of any."""

    owner: int
    text: str = ""
    loop: bool = False


def ambiguous_texts(
    parts: Sequence[Part], pattern: Pattern
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return two divisions of one text among `parts`; None when no text has two.

    Divisions without an empty part are preferred.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    for minimum in (1, 0):
        found = [_steps(part, owner, pattern, minimum) for owner, part in enumerate(parts)]
        if (runs := _search(list(chain(*found)))) is not None:
            text, one, other = runs
            return _divide(text, one, len(parts)), _divide(text, other, len(parts))
    return None


def _steps(part: Part, owner: int, pattern: Pattern, minimum: int) -> list[_Step]:
    if isinstance(part, str):
        return [_Step(owner, char) for char in part]
    level = pattern.levels[part.position] if isinstance(part, LevelVariable) else None
    if not isinstance(level, Glob):
        return [_Step(owner)] * minimum + [_Step(owner, loop=True)]
    first, *others = level.parts
    steps = [_Step(owner, char) for char in first]
    steps += [_Step(owner)] * level.minimum
    for text in others:
        steps.append(_Step(owner, loop=True))
        steps += [_Step(owner, char) for char in text]
    return steps


def _search(steps: Sequence[_Step]) -> tuple[str, _Owners, _Owners] | None:
    texts = sorted(step.text for step in steps if step.text)
    alphabet = list(dict.fromkeys((OTHER_CHARACTER, *texts)))
    queue: deque[tuple[int, int, str, _Owners, _Owners]] = deque([(0, 0, "", (), ())])
    seen = {(0, 0, False)}
    while queue:
        one, other, text, first, second = queue.popleft()
        spend(len(alphabet))
        if first != second and _may_end(steps, one) and _may_end(steps, other):
            return text, first, second
        for char in alphabet:
            for left, owner in _moves(steps, one, char):
                for right, other_owner in _moves(steps, other, char):
                    state = (left, right, first != second or owner != other_owner)
                    if state not in seen:
                        seen.add(state)
                        owners = (*first, owner), (*second, other_owner)
                        queue.append((left, right, text + char, *owners))
    return None


def _moves(steps: Sequence[_Step], at: int, char: str) -> list[tuple[int, int]]:
    """Return the next steps of a run after `char`, each with the part that takes it."""
    found: list[tuple[int, int]] = []
    for index, step in enumerate(steps[at:], at):
        if not step.loop:
            fits = step.text in {"", char}
            return [*found, (index + 1, step.owner)] if fits else found
        found.append((index, step.owner))
    return found


def _may_end(steps: Sequence[_Step], at: int) -> bool:
    return all(step.loop for step in steps[at:])


def _divide(text: str, owners: _Owners, parts: int) -> tuple[str, ...]:
    pairs = list(zip(owners, text, strict=True))
    return tuple("".join(char for owner, char in pairs if owner == part) for part in range(parts))
