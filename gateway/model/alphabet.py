"""One text for every kind of level that some patterns can tell apart; it never invents two alike.

Two levels that the same literals and globs match are one letter of the alphabet in which
`language` spells subjects. The letters are found by walking the automata of all globs together,
character by character, so a kind that no text has is not listed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import TypeAlias

from gateway.errors import LimitError
from gateway.model.pattern import Glob

MAX_TEXTS = 20_000  # texts the walk looks at; about 0.2 s
PLAIN = "xyzabcdefghijklmnopqrstuvw0123456789"  # what examples are made of, best first
UNUSUAL = 0xA1  # where the search for a character goes on when none of PLAIN is left

_State: TypeAlias = tuple[tuple[tuple[frozenset[int], int], ...], tuple[str, ...], int]
_Kind: TypeAlias = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Universe:
    """Which subjects exist at all; an example outside of it would convince nobody."""

    empty_levels: bool = True
    empty_subject: bool = True  # whether one empty level alone is a subject
    forbidden: str = ""  # characters that no level holds

    def has(self, level: str) -> bool:
        if not level:
            return self.empty_levels
        return not self.forbidden or not any(char in self.forbidden for char in level)


EVERYTHING = Universe()


@dataclass(frozen=True, slots=True)
class _Spelling:
    """A glob as characters in a row with loops between them, and the least length of its texts."""

    chars: str
    loops: frozenset[int]
    least: int

    def after(self, state: tuple[frozenset[int], int], char: str) -> tuple[frozenset[int], int]:
        places, length = state
        moved = {place for place in places if place in self.loops}
        moved |= {place + 1 for place in places if self.chars[place : place + 1] == char}
        loop = max(moved & self.loops, default=0)  # it lets pass whatever an earlier place takes
        return frozenset(place for place in moved if place >= loop), min(length + 1, self.least)

    def accepts(self, state: tuple[frozenset[int], int]) -> bool:
        return len(self.chars) in state[0] and state[1] >= self.least


def letters(
    exact: Collection[str],
    globs: Collection[Glob],
    universe: Universe = EVERYTHING,
    most: int | None = None,
) -> tuple[str, ...]:
    """A text for each kind of level: those that are not in `exact` first, then `exact` itself.

    Raises:
        LimitError: a walk of `most` texts, MAX_TEXTS unless given, does not find them all.
    """
    most = MAX_TEXTS if most is None else most
    taken = frozenset(exact)
    known = tuple(text for text in exact if universe.has(text))
    if not globs:
        return (_fresh_text(taken, universe), *known)
    spellings = [_spelling(glob) for glob in globs]
    found = _walk(spellings, (), universe, most)
    if clashing := [kind for kind, text in found.items() if text in taken]:
        others = _walk(spellings, tuple(sorted(taken)), universe, most)
        for kind in clashing:
            text = others.get(kind)
            del found[kind]
            if text is not None:
                found[kind] = text
    return (*found.values(), *known)


def _fresh_text(taken: frozenset[str], universe: Universe) -> str:
    first = next(_characters(universe.forbidden))
    short = (char for char in PLAIN if char not in universe.forbidden)
    longer = (first * length for length in count(1))
    return next(text for text in chain(short, longer) if text not in taken)


def _characters(unwanted: Collection[str]) -> Iterator[str]:
    every = chain(PLAIN, map(chr, count(UNUSUAL)))
    return (char for char in every if char not in unwanted)


def _spelling(glob: Glob) -> _Spelling:
    loops: set[int] = set()
    length = 0
    for part in glob.parts[:-1]:
        length += len(part)
        loops.add(length)
    chars = "".join(glob.parts)
    return _Spelling(chars, frozenset(loops), glob.minimum and len(chars) + glob.minimum)


def _walk(
    spellings: list[_Spelling], avoided: tuple[str, ...], universe: Universe, most: int
) -> dict[_Kind, str]:
    """The shortest text of every kind, none of `avoided`, the empty text only without another."""
    common = {char for spelling in spellings for char in spelling.chars}
    fresh = next(_characters(common.union(universe.forbidden, *avoided)))
    start: _State = (tuple((frozenset({0}), 0) for _ in spellings), avoided, 0)
    found: dict[_Kind, str] = {}
    seen: set[_State] = set()
    queue = deque([(start, "")])
    looked = 0
    while queue:
        state, text = queue.popleft()
        ahead = {word[len(text)] for word in state[1] if len(word) > len(text)}
        for char in (fresh, *sorted(common | ahead)):
            after = _next_state(spellings, state, text + char)
            looked += 1
            if char in universe.forbidden or after in seen:
                continue
            seen.add(after)
            queue.append((after, text + char))
            if text + char not in after[1]:
                found.setdefault(_kind(spellings, after), text + char)
        if looked > most:
            named = "globs of " + ", ".join(spelling.chars for spelling in spellings)
            raise LimitError("pattern algebra", named, "texts", "texts", looked, most)
    if universe.empty_levels and "" not in avoided:
        found.setdefault(_kind(spellings, start), "")
    return found


def _next_state(spellings: list[_Spelling], state: _State, text: str) -> _State:
    """After the last character of `text`; `avoided` shrinks to the words that begin with it."""
    machines = zip(spellings, state[0], strict=True)
    moved = tuple(spelling.after(old, text[-1]) for spelling, old in machines)
    words = tuple(word for word in state[1] if word.startswith(text))
    return moved, words, len(text) if words else 0


def _kind(spellings: list[_Spelling], state: _State) -> _Kind:
    machines = zip(spellings, state[0], strict=True)
    return tuple(spelling.accepts(old) for spelling, old in machines)
