"""Two flows to one broker: a message that both carry, and names of both that become one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from gateway.model.pattern import Pattern
from gateway.proofs.flows.flow import Flow, cuts_of
from gateway.proofs.search.equations import restricted
from gateway.proofs.search.examples import exactly, example
from gateway.proofs.search.samples import Trials
from gateway.proofs.search.witness import Sent, sent
from gateway.translate.names import Escape

ATTEMPTS = 3  # made names that are tried for a pair, beside those of its own examples
Names = tuple[str, ...]


@dataclass(frozen=True)  # no slots: what takes a search is kept
class Meeting:
    """Names of `one` that may become a name of `other`, and the way round."""

    one: Flow
    other: Flow
    trials: Trials

    @cached_property
    def near(self) -> list[Pattern]:
        """Patterns of `one` whose names may become one of `other`."""
        return restricted(self.one, self.other.image)

    @cached_property
    def far(self) -> list[Pattern]:
        """Patterns of `other` whose names may become one of `one`."""
        return restricted(self.other, self.one.image)

    @cached_property
    def may(self) -> bool:
        """Whether names may meet: when either has none, they do not."""
        return any(True for _ in self._near_names()) and any(True for _ in self._far_names())

    @property
    def same_source(self) -> bool:
        return self.one.site.broker == self.other.site.broker

    @property
    def open(self) -> bool:
        """Whether no example proves nothing: functions were guessed at."""
        return any(True for flow in (self.one, self.other) for _ in cuts_of(flow))

    def copies(self) -> tuple[Sent, Sent] | None:
        """What both make of one message, under one name when there is such a message."""
        excludes = [*self.one.site.excludes, *self.other.site.excludes]
        levels = example([[self.one.pattern], [self.other.pattern]], excludes)
        if levels is None:
            return None
        first = self._sent(levels, levels)
        if first is not None and first[0].arrived == first[1].arrived:
            return first
        for made in self._made() if self.may else ():
            for left in restricted(self.one, made):
                for right in restricted(self.other, made):
                    levels = example([[left], [right]], excludes)
                    pair = None if levels is None else self._sent(levels, levels)
                    if pair is not None and pair[0].arrived == pair[1].arrived:
                        return pair
        return self._copied_by_trial() or first

    def _copied_by_trial(self) -> tuple[Sent, Sent] | None:
        """One message that both make the same of, where equations are not solved."""
        flows = (self.one, self.other)
        if not self.may or not any(flow.repeats or any(cuts_of(flow)) for flow in flows):
            return None
        tried = (names for flow in flows for names in self.trials.of(flow).values())
        pairs = (self._sent(levels, levels) for names in tried for levels in names)
        same = (pair for pair in pairs if pair is not None and pair[0].arrived == pair[1].arrived)
        return next(same, None)

    def collision(self) -> tuple[Sent, Sent] | None:
        """Two names that become one; of two brokers perhaps the same name."""
        same = self._kept() if self._keeps else None
        if same is not None:
            return None if self.same_source else same
        for first, second in self._pairs():
            pair = self._sent(first, second)
            if pair is None or pair[0].arrived != pair[1].arrived:
                continue
            if first != second:
                return pair
            if not self.same_source:
                same = same or pair
        return same

    @property
    def _keeps(self) -> bool:
        """Whether both leave names as they are: then no two different ones become one."""
        return all(
            flow.keeps and flow.target.renderer.escape is not Escape.REPLACE
            for flow in (self.one, self.other)
        )

    def _kept(self) -> tuple[Sent, Sent] | None:
        excludes = [*self.one.site.excludes, *self.other.site.excludes]
        levels = example([[self.one.pattern], [self.other.pattern]], excludes)
        return None if levels is None else self._sent(levels, levels)

    def _pairs(self) -> Iterator[tuple[Names, Names]]:
        """A name of each that may become one, different ones first."""
        yield from self._close()
        if self.open:
            yield from self._by_trial()

    def _by_trial(self) -> Iterator[tuple[Names, Names]]:
        known, others = self.trials.of(self.one), self.trials.of(self.other)
        pairs = (
            pair
            for arrived, seconds in others.items()
            for pair in product(known.get(arrived, ()), seconds)
        )
        same: tuple[Names, Names] | None = None
        for pair in pairs:
            if pair[0] == pair[1]:
                same = same or pair  # the first of them tells as much as all
            else:
                yield pair
        if same is not None:
            yield same

    def _close(self) -> Iterator[tuple[Names, Names]]:
        """Pairs that equations between levels give."""
        ones, others = self.one.site.excludes, self.other.site.excludes
        for made in self._made():
            rights = restricted(self.other, made)
            for left in restricted(self.one, made):
                first = example([[left]], ones)
                known = sent(self.one, first)
                if first is None or known is None or exactly(known.arrived) != made:
                    continue
                for right in rights:
                    second = example([[right]], [*others, exactly(first)])
                    if second is not None:
                        yield first, second
                    elif (second := example([[right]], others)) is not None:
                        yield example([[left]], [*ones, exactly(second)]) or first, second

    def _made(self) -> Iterator[Pattern]:
        """Names that one makes and the other may make, then such that both may."""
        tried: dict[Pattern, None] = {}
        for flow, names in ((self.one, self._near_names()), (self.other, self._far_names())):
            for levels in names:
                made = sent(flow, levels)
                if made is not None and exactly(made.arrived) not in tried:
                    tried[exactly(made.arrived)] = None
                    yield exactly(made.arrived)
        for _ in range(ATTEMPTS):
            both = example([[self.one.image], [self.other.image]], list(tried))
            if both is None:
                return
            tried[exactly(both)] = None
            yield exactly(both)

    def _sent(self, first: Names, second: Names) -> tuple[Sent, Sent] | None:
        left, right = sent(self.one, first), sent(self.other, second)
        return None if left is None or right is None else (left, right)

    def _near_names(self) -> Iterator[Names]:
        found = (example([[pattern]], self.one.site.excludes) for pattern in self.near)
        return (levels for levels in found if levels is not None)

    def _far_names(self) -> Iterator[Names]:
        found = (example([[pattern]], self.other.site.excludes) for pattern in self.far)
        return (levels for levels in found if levels is not None)
