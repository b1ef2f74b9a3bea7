"""A trie of patterns: finds the values whose patterns match a name.

Names go down level by level, from one root for each set of wildcard exclusions. The match follows
all reached nodes in one pass over the levels of a name: it needs no recursion, and its cost is
bounded by levels times nodes.
"""

from __future__ import annotations

from typing import Final, Generic, TypeAlias, TypeVar

from gateway.model.chain import Automaton, Single, chain_of
from gateway.model.matching import glob_matches
from gateway.model.pattern import AnyOne, Glob, Literal, Pattern

T = TypeVar("T")
_Roots: TypeAlias = "dict[tuple[str, ...], _Node]"  # by the prefixes that a first wildcard excludes
NO_LITERALS: Final[dict[str, _Node]] = {}  # shared by all nodes without literals; stays empty


class PatternTrie(Generic[T]):
    """Values by pattern.

    Mutable: `add` fills it; `find` is safe in any thread afterwards.
    """

    def __init__(self) -> None:
        self._values: list[T] = []
        self._slots: dict[int, int] = {}  # id of a value -> its index in `_values`
        self._plain: dict[tuple[str, ...], list[int]] = {}  # patterns without wildcards
        self._trees: dict[tuple[str, ...], _Roots] = {}  # by the levels that wildcards never match

    def add(self, pattern: Pattern, value: T) -> None:
        """Add a pattern to `value`; values are compared by identity."""
        slot = self._slots.setdefault(id(value), len(self._values))
        if slot == len(self._values):
            self._values.append(value)
        texts = tuple(level.text for level in pattern.levels if isinstance(level, Literal))
        if len(texts) == len(pattern.levels):
            self._plain.setdefault(texts, []).append(slot)
            return
        chain = chain_of(pattern)
        roots = self._trees.setdefault(chain.exclusions.whole_levels, {})
        _insert(roots.setdefault(chain.exclusions.first_level_prefixes, _Node()), chain, slot)

    def find(self, levels: tuple[str, ...]) -> tuple[T, ...]:
        """Return the values with a matching pattern, each once, in order of their first `add`."""
        if not levels:
            return ()
        slots = list(self._plain.get(levels, ()))
        for excluded, roots in self._trees.items():
            slots += _Matching().match(roots, levels, excluded)
        if len(slots) > 1:
            slots = sorted(set(slots))
        return tuple([self._values[slot] for slot in slots])


class _Node:
    """A node of the tree.

    `ends` are the values that match when the name ends at this node, `rests` those that match
    whatever follows. `loop` is the node for any number of levels before the next step; `inside` is
    the nearest loop above. A loop is finished when its `awaits` loops below are reached, unless an
    end below it makes it `pinned`.

    Mutable: filled by `PatternTrie.add`.
    """

    __slots__ = ("awaits", "ends", "globs", "inside", "literals", "loop", "one", "pinned", "rests")

    def __init__(self, inside: _Node | None = None) -> None:
        self.literals: dict[str, _Node] = NO_LITERALS
        self.globs: dict[str, dict[Glob, _Node]] | None = None  # by the first character
        self.one: _Node | None = None
        self.loop: _Node | None = None
        self.ends: list[int] | None = None
        self.rests: list[int] | None = None
        self.inside = inside
        self.awaits = 0
        self.pinned = False

    def child(self, step: Single, inside: _Node | None) -> _Node:
        """Return the node after `step`; create it when it is missing."""
        match step:
            case Literal(text):
                self.literals = {} if self.literals is NO_LITERALS else self.literals
                return self.literals.get(text) or self.literals.setdefault(text, _Node(inside))
            case Glob(parts):
                self.globs = {} if self.globs is None else self.globs
                group = self.globs.setdefault(parts[0][:1], {})
                return group.get(step) or group.setdefault(step, _Node(inside))
            case AnyOne():
                self.one = self.one or _Node(inside)
                return self.one

    def loop_here(self) -> _Node:
        """Return the loop before the next step; create it when it is missing."""
        if self.loop is None:
            self.loop = _Node(self.inside)
            if self.inside is not None:
                self.inside.awaits += 1
        return self.loop


def _insert(node: _Node, chain: Automaton, slot: int) -> None:
    inside: _Node | None = None
    for state, step in enumerate(chain.steps):
        if state in chain.loops:
            node = inside = node.loop_here()
        node = node.child(step, inside)
    if inside is not None:
        inside.pinned = True
    if len(chain.steps) in chain.loops:
        node.rests = node.rests or []
        node.rests.append(slot)
    else:
        node.ends = node.ends or []
        node.ends.append(slot)


class _Matching:
    """The match of one name against one tree.

    A loop is entered once, and left when it is finished.

    Mutable: owned by one call of `find`.
    """

    __slots__ = ("_due", "_entered", "_found")

    def __init__(self) -> None:
        self._found: list[int] = []
        self._entered: set[_Node] = set()
        self._due: dict[_Node, int] = {}  # entered loops -> loops below that are not reached yet

    def match(self, roots: _Roots, levels: tuple[str, ...], excluded: tuple[str, ...]) -> list[int]:
        """Return the slots of the matching patterns under `roots`, possibly with repetitions.

        Wildcards never match the levels in `excluded`.
        """
        hidden = 0  # number of levels up to the last excluded one
        if excluded:
            hidden = max((n for n, text in enumerate(levels, 1) if text in excluded), default=0)
        reached = self._begin(roots, levels[0], hidden, levels[0] not in excluded)
        for depth, level in enumerate(levels[1:], 2):
            seen = depth > hidden or level not in excluded
            nodes = [*reached, *self._due] if self._due else reached
            if not seen:
                self._entered.clear()
                self._due.clear()
            reached = self._after(nodes, level, seen, seen, depth >= hidden)
            if not reached and not self._due:
                break
        for node in reached:
            if node.ends is not None:
                self._found += node.ends
        return self._found

    def _begin(self, roots: _Roots, level: str, hidden: int, seen: bool) -> list[_Node]:
        """Return the nodes after the first level, which some first wildcards exclude."""
        reached: list[_Node] = []
        for first, root in roots.items():
            wild = seen and not level.startswith(first)
            if wild and not hidden and root.rests is not None:
                self._found += root.rests
            nodes = [root] if root.loop is None else [root, root.loop]
            if wild and root.loop is not None:
                self._enter(root.loop)
            reached += self._after(nodes, level, wild, seen, hidden <= 1)
        return reached

    def _after(
        self, nodes: list[_Node], level: str, wild: bool, seen: bool, rest: bool
    ) -> list[_Node]:
        """Return the nodes after one level, and enter their loops.

        `wild`: whole-level wildcards match the level; `seen`: globs match it; `rest`: rest
        wildcards match all that follows.
        """
        after: list[_Node] = []
        for node in nodes:
            if (child := node.literals.get(level)) is not None:
                after.append(child)
            if (child := node.one) is not None and wild:
                after.append(child)
            if (globs := node.globs) is not None and seen:
                after += _fitting(globs, level)
        for node in after:
            if node.rests is not None and rest:
                self._found += node.rests
            if node.loop is not None:
                self._enter(node.loop)
        return after

    def _enter(self, loop: _Node) -> None:
        if loop in self._entered:
            return
        self._entered.add(loop)
        self._due[loop] = loop.awaits
        above = loop.inside
        if above in self._due and not above.pinned:
            self._due[above] -= 1
            if not self._due[above]:
                del self._due[above]


def _fitting(globs: dict[str, dict[Glob, _Node]], level: str) -> list[_Node]:
    return [
        node
        for key in (("", level[0]) if level else ("",))
        if key in globs
        for glob, node in globs[key].items()
        if level.startswith(glob.parts[0]) and glob_matches(glob, level)
    ]
