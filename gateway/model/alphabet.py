"""One sample text for every class of levels that some patterns can distinguish.

Two levels that the same literals and globs match are one letter of the alphabet in which
`language` spells subjects. The search for the letters runs the automata of all globs together,
character by character, so a class that contains no text is not listed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import accumulate, chain, count
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.matching import glob_matches
from gateway.model.pattern import Glob

MAX_TEXTS = 20_000  # texts that the search examines; about 0.2 s
PREFERRED_CHARACTERS = "xyzabcdefghijklmnopqrstuvw0123456789"  # for examples, best first
FALLBACK_CODE_POINT = 0xA1  # the first character after PREFERRED_CHARACTERS are used up

_GlobState: TypeAlias = tuple[frozenset[int], int]  # positions, and characters read
_State: TypeAlias = tuple[tuple[_GlobState, ...], tuple[str, ...], int]
_Class: TypeAlias = tuple[bool, ...]  # for each glob: whether it matches


@dataclass(frozen=True, slots=True)
class _GlobAutomaton:
    """A glob as a row of characters with loops between them, and the minimum length of a text."""

    chars: str
    loops: frozenset[int]
    min_length: int

    def after(self, state: _GlobState, char: str) -> _GlobState:
        positions, length = state
        moved = {position for position in positions if position in self.loops}
        moved |= {at + 1 for at in positions if self.chars[at : at + 1] == char}
        loop = max(moved & self.loops, default=0)  # it also accepts what earlier positions accept
        kept = frozenset(position for position in moved if position >= loop)
        return kept, min(length + 1, self.min_length)


def sample_levels(
    exact: Collection[str], globs: Collection[Glob], max_texts: int = MAX_TEXTS
) -> tuple[str, ...]:
    """Return a text for each class of levels: those outside `exact` first, then `exact` itself.

    Raises:
        SearchBudgetExceeded: a search of `max_texts` texts is incomplete.
    """
    taken = frozenset(exact)
    if not globs:
        longer = (PREFERRED_CHARACTERS[0] * length for length in count(1))
        return (_first_outside(taken, chain(PREFERRED_CHARACTERS, longer)), *exact)
    found = _search(globs, (), max_texts)
    if clashing := [each for each, text in found.items() if text in taken]:
        others = _search(globs, tuple(sorted(taken)), max_texts)
        for each in clashing:
            del found[each]
            if each in others:
                found[each] = others[each]
    return (*found.values(), *exact)


def _first_outside(taken: Collection[str], texts: Iterable[str]) -> str:
    return next(text for text in texts if text not in taken)


def _automaton(glob: Glob) -> _GlobAutomaton:
    loops = frozenset(accumulate(map(len, glob.parts[:-1])))
    chars = "".join(glob.parts)
    return _GlobAutomaton(chars, loops, glob.minimum and len(chars) + glob.minimum)


def _search(globs: Collection[Glob], avoided: tuple[str, ...], max_texts: int) -> dict[_Class, str]:
    """Return the shortest text of every class, none of `avoided`.

    The empty text represents a class only when the class has no other text.
    """
    automata = [_automaton(glob) for glob in globs]
    common = {char for automaton in automata for char in automaton.chars}
    characters = chain(PREFERRED_CHARACTERS, map(chr, count(FALLBACK_CODE_POINT)))
    fresh = _first_outside(common.union(*avoided), characters)
    start: _State = (tuple((frozenset({0}), 0) for _ in automata), avoided, 0)
    found: dict[_Class, str] = {}
    seen: set[_State] = set()
    queue = deque([(start, "")])
    examined = 0
    while queue:
        state, text = queue.popleft()
        ahead = {word[len(text)] for word in state[1] if len(word) > len(text)}
        for char in (fresh, *sorted(common | ahead)):
            after = _next_state(automata, state, text + char)
            examined += 1
            if after in seen:
                continue
            seen.add(after)
            queue.append((after, text + char))
            if text + char not in after[1]:
                found.setdefault(_class_of(globs, text + char), text + char)
        if examined > max_texts:
            question = "globs of " + ", ".join(automaton.chars for automaton in automata)
            raise SearchBudgetExceeded("pattern algebra", question, "texts", examined, max_texts)
    if "" not in avoided:
        found.setdefault(_class_of(globs, ""), "")
    return found


def _next_state(automata: list[_GlobAutomaton], state: _State, text: str) -> _State:
    """Return the state after the last character of `text`.

    Of the avoided words, the state keeps those that begin with `text`.
    """
    moved = tuple(
        automaton.after(old, text[-1]) for automaton, old in zip(automata, state[0], strict=True)
    )
    words = tuple(word for word in state[1] if word.startswith(text))
    return moved, words, len(text) if words else 0


def _class_of(globs: Collection[Glob], text: str) -> _Class:
    return tuple(glob_matches(glob, text) for glob in globs)
