"""Search two flows to one broker for a message that both carry, and for names that collide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.pattern import Pattern
from gateway.proofs.budget import start_question
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.equations import source_patterns
from gateway.proofs.search.examples import exact_pattern, examples, find_example, names_of
from gateway.proofs.search.translated_name import TranslatedName, translate_by_flow
from gateway.translate.names import OnUnmappable

MAX_ATTEMPTS = 3  # target names that are tried for a pair, beside its own examples
Levels: TypeAlias = tuple[str, ...]
Trials: TypeAlias = Callable[[Flow], dict[Levels, list[Levels]]]  # names by their target levels
Translated: TypeAlias = tuple[TranslatedName, TranslatedName]


@dataclass(frozen=True, slots=True)
class Overlap:
    """The result for two flows.

    `copies` is one message, translated by both flows; `names` are two source names that become one
    target name. `unproven` says that names may collide and no example was found.
    """

    copies: Translated | None = None
    names: Translated | None = None
    unproven: bool = False


def of_one_target(one: Flow, other: Flow) -> bool:
    """Return whether two flows are two patterns of one target."""
    return one.source is other.source and one.target_index == other.target_index


def find_overlap(one: Flow, other: Flow, trials: Trials) -> Overlap | None:
    """Search two flows for an overlap; None when the search became too long."""
    start_question()
    try:
        pair = _FlowPair(one, other, trials)
        one_target = of_one_target(one, other)
        copies = pair.copies() if pair.same_source and not one_target else None
        if (copies is not None and _arrive_alike(copies)) or not pair.may_overlap:
            return Overlap(copies)
        names = pair.collision()
        if names is None and pair.has_functions and not one_target:
            return Overlap(copies, unproven=True)  # patterns of one target have own findings
        return Overlap(copies, names)
    except SearchBudgetExceeded:
        return None


def find_copies(one: Flow, other: Flow, trials: Trials) -> Translated | None:
    """Return one message that both flows carry, under one target name if possible.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    return _FlowPair(one, other, trials).copies()


def _name_of(found: TranslatedName) -> list[Pattern]:
    return [exact_pattern(found.target_levels)]


def _arrive_alike(pair: Translated) -> bool:
    return pair[0].target_levels == pair[1].target_levels


@dataclass(frozen=True)  # no slots, for the cached properties
class _FlowPair:
    """Two flows; `patterns` are of source names that may become a target name of the other."""

    one: Flow
    other: Flow
    trials: Trials
    patterns: dict[Flow, list[Pattern]] = field(default_factory=dict)

    @cached_property
    def may_overlap(self) -> bool:
        """Whether names may collide: both flows have names for it."""
        flows = self.one, self.other
        if any(flow.has_fields for flow in flows) and not self._share_a_name:
            return False
        return all(any(True for _ in self._names(flow)) for flow in flows)

    @property
    def _share_a_name(self) -> bool:
        """Whether a target name of one flow may be one of the other."""
        return find_example([[self.one.target_pattern], [self.other.target_pattern]]) is not None

    @property
    def _excludes(self) -> list[Pattern]:
        return [*self.one.source.excludes, *self.other.source.excludes]

    @cached_property
    def _common(self) -> Levels | None:
        """A name that both flows take."""
        return find_example([[self.one.pattern], [self.other.pattern]], self._excludes)

    @property
    def same_source(self) -> bool:
        """Whether both flows take names of one broker."""
        return self.one.source.broker == self.other.source.broker

    @property
    def has_functions(self) -> bool:
        """Whether a flow has a lossy function; then the lack of an example is not a proof."""
        return bool(self.one.lossy_calls or self.other.lossy_calls)

    def copies(self) -> Translated | None:
        """Return one message that both flows carry, under one target name if possible."""
        if (levels := self._common) is None:
            return None
        first = self._translate(levels, levels)
        pairs = chain(
            [first], (self._translate(each, each, made) for each, made in self._common_names())
        )
        return next((pair for pair in pairs if pair is not None and _arrive_alike(pair)), first)

    def _common_names(self) -> Iterator[tuple[Levels, Pattern]]:
        """Yield names that both flows may give one name, and that one.

        By trial where no equation is solved.
        """
        if not self.may_overlap:
            return
        for made in self._target_names():
            for left in source_patterns(self.one, made):
                for right in source_patterns(self.other, made):
                    if (levels := find_example([[left], [right]], self._excludes)) is not None:
                        yield levels, made
        flows = self.one, self.other
        if any(flow.repeats_variable or flow.lossy_calls for flow in flows):
            for arrived, names in (each for flow in flows for each in self.trials(flow).items()):
                yield from ((levels, exact_pattern(arrived)) for levels in names)

    def collision(self) -> Translated | None:
        """Return two names that become one; from two brokers possibly the same name."""
        levels = self._common if self._keep_names else None
        same = None if levels is None else self._translate(levels, levels)
        if same is not None:
            return None if self.same_source else same
        for first, second, made in self._pairs():
            pair = self._translate(first, second, made)
            if pair is None or not _arrive_alike(pair):
                continue
            if first != second:
                return pair
            if not self.same_source:
                same = same or pair
        return same

    @property
    def _keep_names(self) -> bool:
        """Whether both flows keep names: then no two different names become one."""
        return all(
            flow.keeps_name and flow.target.renderer.on_unmappable is not OnUnmappable.REPLACE
            for flow in (self.one, self.other)
        )

    def _pairs(self) -> Iterator[tuple[Levels, Levels, Pattern]]:
        """Yield pairs of names that may become one, and that one; different names first."""
        yield from self._by_equations()
        if self.has_functions:
            yield from self._by_trial()

    def _by_trial(self) -> Iterator[tuple[Levels, Levels, Pattern]]:
        known, others = self.trials(self.one), self.trials(self.other)
        pairs = (
            product(known.get(arrived, ()), seconds, [exact_pattern(arrived)])
            for arrived, seconds in others.items()
        )
        same: tuple[Levels, Levels, Pattern] | None = None
        for pair in chain.from_iterable(pairs):
            if pair[0] == pair[1]:
                same = same or pair  # one example is enough
            else:
                yield pair
        if same is not None:
            yield same

    def _by_equations(self) -> Iterator[tuple[Levels, Levels, Pattern]]:
        """Yield the pairs that the equations give."""
        ones, others = self.one.source.excludes, self.other.source.excludes
        for made in self._target_names():
            rights = source_patterns(self.other, made)
            for left in source_patterns(self.one, made):
                first = find_example([[left]], ones)
                known = translate_by_flow(self.one, first, [made])
                if first is None or known is None or exact_pattern(known.target_levels) != made:
                    continue
                for right in rights:
                    second = find_example([[right]], [*others, exact_pattern(first)])
                    if second is not None:
                        yield first, second, made
                    elif (second := find_example([[right]], others)) is not None:
                        unlike = [*ones, exact_pattern(second)]
                        yield find_example([[left]], unlike) or first, second, made

    def _target_names(self) -> Iterator[Pattern]:
        """Yield target names of one flow that the other may make, then names that both may."""
        tried: dict[Pattern, None] = {}
        for flow in (self.one, self.other):
            goal = self.other if flow is self.one else self.one
            for levels in self._names(flow):
                found = translate_by_flow(flow, levels, [goal.target_pattern])
                made = None if found is None else exact_pattern(found.target_levels)
                if made is not None and made not in tried:
                    tried[made] = None
                    yield made
        every = [self.one.target_pattern], [self.other.target_pattern]
        yield from map(exact_pattern, examples(every, list(tried), MAX_ATTEMPTS))

    def _translate(
        self, first: Levels, second: Levels, made: Pattern | None = None
    ) -> Translated | None:
        """Translate a name by each flow; fields of messages make the two alike, where they can."""
        if self.one.has_fields and not self.other.has_fields:
            right = translate_by_flow(self.other, second)
            left = right and translate_by_flow(self.one, first, _name_of(right))
        else:
            left = translate_by_flow(self.one, first, [made or self.other.target_pattern])
            right = left and translate_by_flow(self.other, second, _name_of(left))
        return None if left is None or right is None else (left, right)

    def _names(self, flow: Flow) -> Iterator[Levels]:
        """Yield names of `flow` that may become a target name of the other flow."""
        if flow not in self.patterns:
            goal = self.other if flow is self.one else self.one
            self.patterns[flow] = source_patterns(flow, goal.target_pattern)
        yield from names_of(flow, self.patterns[flow])
