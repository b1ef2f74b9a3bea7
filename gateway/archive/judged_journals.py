"""The journals of a writer that nights have judged, as chains with the numbers that are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_MAX_CHAINS: Final = 50  # of a writer, the newest
_NO_START: Final = 1 << 62  # microseconds: later than every process


@dataclass(frozen=True, slots=True)
class Span:
    """Numbers of journals, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A chain of a writer, and its judged journals: `first` to `number` but the `missing` ones.

    `start` is that of the process that wrote the last one. Journals before `first` are not missing:
    their dates were removed, or their disk is away.
    """

    writer: str
    start: int
    number: int
    missing: tuple[Span, ...] = ()
    first: int = 0

    def has(self, start: int, number: int) -> bool:
        """Return whether a journal was judged; a later process may count from the begin again."""
        if not self.first <= number <= self.number or (
            start > self.start and number <= self.number
        ):
            return False
        return not any(span.first <= number <= span.last for span in self.missing)


def with_judged(
    chains: Sequence[Seen], journals: Sequence[tuple[int, int]], writer: str
) -> list[Seen]:
    """Return the `chains` of a writer with further judged journals, each a start and a number.

    A later process that counts from the begin again, as with a new buffer, begins a chain.
    """
    firsts = {number: start for start, number in sorted(journals, reverse=True)}
    again = min(
        (start for start, number in journals if _counts_again(chains, firsts, start, number)),
        default=_NO_START,
    )
    older = [each for each in journals if each[0] < again]
    found = [
        _extended(chain, [each for each in older if chain_of(chains, each[0]) is chain], writer)
        for chain in chains or (None,)
    ]
    newer = [each for each in journals if each[0] >= again]
    return [*found, *([_extended(None, newer, writer)] if newer else ())][-_MAX_CHAINS:]


def chain_of(chains: Sequence[Seen], start: int) -> Seen | None:
    """Return the chain of the journals of the process that began at `start`, by last starts."""
    return next((each for each in chains if start <= each.start), chains[-1] if chains else None)


def _counts_again(
    chains: Sequence[Seen], firsts: Mapping[int, int], start: int, number: int
) -> bool:
    """Return whether an earlier process wrote a journal of this number; `firsts` are new ones."""
    if not chains:
        return start > firsts[number]
    return start > chains[-1].start and number <= chains[-1].number


def _extended(known: Seen | None, journals: Sequence[tuple[int, int]], writer: str) -> Seen:
    """Return a chain with further journals."""
    numbers = {number for _, number in journals}
    start = max((start for start, _ in journals), default=0)
    if known is None:
        first, last = min(numbers), max(numbers)
        return Seen(writer, start, last, gaps(first, last, numbers), first)
    absent = [span for old in known.missing for span in gaps(old.first, old.last, numbers)]
    first = min([known.first, *numbers])
    last = max([known.number, *numbers])
    absent += gaps(first, known.first - 1, numbers)
    absent += gaps(known.number + 1, last, numbers)
    return Seen(writer, max(known.start, start), last, tuple(absent), first)


def gaps(first: int, last: int, numbers: Collection[int]) -> tuple[Span, ...]:
    """Return the spans of `first` to `last` without the `numbers`."""
    found: list[Span] = []
    for number in sorted(each for each in numbers if first <= each <= last):
        if number > first:
            found.append(Span(first, number - 1))
        first = number + 1
    return (*found, Span(first, last)) if first <= last else tuple(found)


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the numbers of all `spans` as spans without overlap, in order."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda each: each.first):
        if found and span.first <= found[-1].last + 1:
            found[-1] = Span(found[-1].first, max(found[-1].last, span.last))
        else:
            found.append(span)
    return found
