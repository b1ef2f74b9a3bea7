"""Two flows to one broker: a message that both carry, and names of both that become one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.model.pattern import Pattern
from gateway.proofs.forms import Flow, cuts_of
from gateway.proofs.solve import restricted
from gateway.proofs.trial import trial_names
from gateway.proofs.witness import Sent, sent
from gateway.proofs.words import exactly, example

ATTEMPTS = 3  # made names that are tried for a pair, beside those of its own examples
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Meeting:
    """`near` holds patterns of `one` whose names may become one of `other`, `far` the way round.

    Beside each pattern stands a name of it. When either is empty, no names meet.
    """

    one: Flow
    other: Flow
    near: tuple[tuple[Pattern, Names], ...]
    far: tuple[tuple[Pattern, Names], ...]

    @classmethod
    def of(cls, one: Flow, other: Flow) -> Meeting:
        near = _towards(one, other)
        return cls(one, other, near, _towards(other, one) if near else ())

    @property
    def may(self) -> bool:
        return bool(self.near and self.far)

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
        return first

    def collision(self) -> tuple[Sent, Sent] | None:
        """Two names that become one; of two brokers perhaps the same name."""
        same: tuple[Sent, Sent] | None = None
        for first, second in self._pairs():
            pair = self._sent(first, second)
            if pair is None or pair[0].arrived != pair[1].arrived:
                continue
            if first != second:
                return pair
            if not self.same_source:
                same = same or pair
        return same

    def _pairs(self) -> Iterator[tuple[Names, Names]]:
        """A name of each that may become one, different ones first."""
        yield from self._close()
        if self.open:
            yield from self._by_trial()

    def _by_trial(self) -> Iterator[tuple[Names, Names]]:
        known: dict[Names, list[Names]] = {}
        for levels in trial_names(self.one):
            if (found := sent(self.one, levels)) is not None:
                known.setdefault(found.arrived, []).append(levels)
        for levels in trial_names(self.other):
            if (found := sent(self.other, levels)) is not None:
                yield from ((first, levels) for first in known.get(found.arrived, ()))

    def _close(self) -> Iterator[tuple[Names, Names]]:
        """Pairs that equations between levels give."""
        ones, others = self.one.site.excludes, self.other.site.excludes
        for made in self._made():
            rights = restricted(self.other, made)
            for left in restricted(self.one, made):
                first = example([[left]], ones)
                if first is None:
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
        for flow, found in ((self.one, self.near), (self.other, self.far)):
            for _, levels in found:
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


def _towards(flow: Flow, other: Flow) -> tuple[tuple[Pattern, Names], ...]:
    found = (
        (pattern, example([[pattern]], flow.site.excludes))
        for pattern in restricted(flow, other.image)
    )
    return tuple((pattern, levels) for pattern, levels in found if levels is not None)
