"""An index of patterns: which values' patterns match a name; it caches nothing and only grows.

A tree by level, with a root for each kind of shyness. All nodes that a name reaches are followed
in one pass over its levels, so no name needs a deep stack and no pattern makes the work explode.
"""

from __future__ import annotations

from typing import Final, Generic, TypeAlias, TypeVar

from gateway.model.chain import Chain, Single, chain_of
from gateway.model.matching import glob_matches
from gateway.model.pattern import AnyOne, Glob, Literal, Pattern

T = TypeVar("T")
_Roots: TypeAlias = "dict[tuple[str, ...], _Node]"  # by the prefixes the first wildcard avoids
NONE: Final[dict[str, _Node]] = {}  # shared by the nodes without literals, never filled


class PatternTable(Generic[T]):
    """Values by pattern. Mutable, because it is filled by `add`; `find` changes nothing."""

    def __init__(self) -> None:
        self._values: list[T] = []
        self._slots: dict[int, int] = {}  # identity of a value -> its place in `_values`
        self._plain: dict[tuple[str, ...], list[int]] = {}  # patterns without wildcards
        self._trees: dict[tuple[str, ...], _Roots] = {}  # by the levels that wildcards do not see

    def add(self, pattern: Pattern, value: T) -> None:
        """Give `value` one more pattern; a value is known by identity and need not be hashable."""
        slot = self._slots.setdefault(id(value), len(self._values))
        if slot == len(self._values):
            self._values.append(value)
        texts = tuple(level.text for level in pattern.levels if isinstance(level, Literal))
        if len(texts) == len(pattern.levels):
            self._plain.setdefault(texts, []).append(slot)
            return
        chain = chain_of(pattern)
        roots = self._trees.setdefault(chain.shy.anywhere, {})
        _insert(roots.setdefault(chain.shy.first, _Node()), chain, slot)

    def find(self, levels: tuple[str, ...]) -> tuple[T, ...]:
        """The values with a matching pattern, each once, in the order they were first added."""
        if not levels:
            return ()
        slots = list(self._plain.get(levels, ()))
        for anywhere, roots in self._trees.items():
            slots += _Walk().match(roots, levels, anywhere)
        if len(slots) > 1:
            slots = sorted(set(slots))
        return tuple([self._values[slot] for slot in slots])


class _Node:
    """Mutable while patterns are added: a place in the tree, and what may come after it.

    `ends` match when the name ends here, `rests` whatever follows. `loop` is the node in which any
    levels may pass before the next step, and `inside` the nearest loop above. A loop has nothing
    left to do once the `awaits` loops below it were reached, unless `pinned` by an end below it.
    """

    __slots__ = ("awaits", "ends", "globs", "inside", "literals", "loop", "one", "pinned", "rests")

    def __init__(self, inside: _Node | None = None) -> None:
        self.literals: dict[str, _Node] = NONE
        self.globs: dict[str, dict[Glob, _Node]] | None = None  # by the first character
        self.one: _Node | None = None
        self.loop: _Node | None = None
        self.ends: list[int] | None = None
        self.rests: list[int] | None = None
        self.inside = inside
        self.awaits = 0
        self.pinned = False

    def child(self, step: Single, inside: _Node | None) -> _Node:
        """The node after `step`, made when it is missing."""
        match step:
            case Literal(text):
                self.literals = {} if self.literals is NONE else self.literals
                return self.literals.get(text) or self.literals.setdefault(text, _Node(inside))
            case Glob(parts):
                self.globs = {} if self.globs is None else self.globs
                group = self.globs.setdefault(parts[0][:1], {})
                return group.get(step) or group.setdefault(step, _Node(inside))
            case AnyOne():
                self.one = self.one or _Node(inside)
                return self.one

    def loop_here(self) -> _Node:
        """The loop before the next step, made when it is missing."""
        if self.loop is None:
            self.loop = _Node(self.inside)
            if self.inside is not None:
                self.inside.awaits += 1
        return self.loop


def _insert(node: _Node, chain: Chain, slot: int) -> None:
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


class _Walk:
    """One name on its way through one tree. Mutable: the loops it is in, and what it found.

    A loop is entered once, and left when it has nothing left to do.
    """

    __slots__ = ("_due", "_entered", "_found")

    def __init__(self) -> None:
        self._found: list[int] = []
        self._entered: set[_Node] = set()
        self._due: dict[_Node, int] = {}  # loops to step from -> loops below they still await

    def match(self, roots: _Roots, levels: tuple[str, ...], anywhere: tuple[str, ...]) -> list[int]:
        """The slots of the patterns under `roots` that match; some may be there twice."""
        hidden = 0  # levels up to the last one that wildcards do not see
        if anywhere:
            hidden = max((n for n, text in enumerate(levels, 1) if text in anywhere), default=0)
        reached = self._begin(roots, levels[0], hidden, levels[0] not in anywhere)
        for depth, level in enumerate(levels[1:], 2):
            seen = depth > hidden or level not in anywhere
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
        """The nodes after the first level, of which some wildcards may be shy."""
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
        """The nodes one level on, with their loops entered.

        `wild` when the level is seen by what stands alone, `seen` when globs see it, and `rest`
        when wildcards see all that follows.
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
