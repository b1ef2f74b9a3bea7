"""Whether the text of one made level tells its parts apart; decided on characters, exactly.

The parts in a row are an automaton; two runs of it over one text, side by side, show a text that
divides in two ways, or that there is none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.model.pattern import Glob, Pattern
from gateway.proofs.budget import spend
from gateway.proofs.flows.flow import Part, Var

FRESH = "x"
FIXED = -1

_Owners: TypeAlias = tuple[int, ...]  # for each character the part that it came from


@dataclass(frozen=True, slots=True)
class _Item:
    """One character of part `owner`, any when `text` is empty; with `loop` a run of any."""

    owner: int
    text: str = ""
    loop: bool = False


def divided_twice(
    parts: Sequence[Part], pattern: Pattern
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Two different sets of texts for `parts` that together read the same; None: there are none.

    Texts without an empty part are shown where there are any.
    """
    for least in (1, 0):
        items = [
            item for owner, part in enumerate(parts) for item in _items(part, owner, pattern, least)
        ]
        if (found := _search(items)) is not None:
            text, one, other = found
            return _cut(text, one, len(parts)), _cut(text, other, len(parts))
    return None


def _items(part: Part, owner: int, pattern: Pattern, least: int) -> list[_Item]:
    if isinstance(part, str):
        return [_Item(owner, char) for char in part]
    level = pattern.levels[part.at] if isinstance(part, Var) else None
    if not isinstance(level, Glob):
        return [_Item(owner)] * least + [_Item(owner, loop=True)]
    first, *others = level.parts
    items = [_Item(owner, char) for char in first]
    items += [_Item(owner)] * level.minimum
    for text in others:
        items.append(_Item(owner, loop=True))
        items += [_Item(owner, char) for char in text]
    return items


def _search(items: Sequence[_Item]) -> tuple[str, _Owners, _Owners] | None:
    alphabet = (FRESH, *sorted({item.text for item in items if item.text} - {FRESH}))
    queue: deque[tuple[int, int, str, _Owners, _Owners]] = deque([(0, 0, "", (), ())])
    seen = {(0, 0, False)}
    while queue:
        one, other, text, first, second = queue.popleft()
        spend(len(alphabet))
        if first != second and _may_end(items, one) and _may_end(items, other):
            return text, first, second
        for char in alphabet:
            for left, owner in _moves(items, one, char):
                for right, twin in _moves(items, other, char):
                    state = (left, right, first != second or owner != twin)
                    if state not in seen:
                        seen.add(state)
                        queue.append((left, right, text + char, (*first, owner), (*second, twin)))
    return None


def _moves(items: Sequence[_Item], at: int, char: str) -> list[tuple[int, int]]:
    """Where a run goes from item `at` with `char`, and the part that takes it."""
    found: list[tuple[int, int]] = []
    for place in range(at, len(items)):
        item = items[place]
        if item.loop:
            found.append((place, item.owner))
            continue
        if item.text in {"", char}:
            found.append((place + 1, item.owner))
        break
    return found


def _may_end(items: Sequence[_Item], at: int) -> bool:
    return all(item.loop for item in items[at:])


def _cut(text: str, owners: _Owners, parts: int) -> tuple[str, ...]:
    pairs = list(zip(owners, text, strict=True))
    return tuple("".join(char for owner, char in pairs if owner == part) for part in range(parts))
