"""The journals of writers that nights have judged, by process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from gateway.archive.layout import JournalName


@dataclass(frozen=True, slots=True)
class Span:
    """Numbers of journals, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The judged journals of one process, `first` to `number` but the `missing` ones.

    `start` is that of the process: two machines of one writer may give one number twice. Journals
    before `first` are not missing: their dates were removed, or their disk is away.
    """

    writer: str
    start: int
    number: int
    missing: tuple[Span, ...] = ()
    first: int = 0

    def has(self, number: int) -> bool:
        """Return whether a journal of this number is there."""
        if not self.first <= number <= self.number:
            return False
        return not any(span.first <= number <= span.last for span in self.missing)


def has_judged(seen: Iterable[Seen], journal: JournalName) -> bool:
    """Return whether a journal is among the judged ones."""
    writer, start, number = journal
    own = (each for each in seen if (each.writer, each.start) == (writer, start))
    return any(each.has(number) for each in own)


def with_judged(known: Sequence[Seen], journals: Iterable[JournalName]) -> list[Seen]:
    """Return the processes of one writer with further judged journals, by their starts."""
    found = {each.start: each for each in known}
    numbers: dict[int, set[int]] = {}
    for each in journals:
        numbers.setdefault(each.start, set()).add(each.number)
        found.setdefault(each.start, Seen(each.writer, each.start, each.number, (), each.number))
    for start, own in numbers.items():
        found[start] = _extended(found[start], own)
    return [found[start] for start in sorted(found)]


def newest_chain(processes: Sequence[Seen]) -> list[Seen]:
    """Return the processes of the newest chain of a writer.

    A process that counts from the begin again, as with a new buffer, begins a chain.
    """
    begin = first = 0
    for number, each in enumerate(processes):
        if each.first <= first:
            begin, first = number, each.first
    return list(processes[begin:])


def as_one(chain: Sequence[Seen]) -> Seen:
    """Return a chain as if its last process had written all its journals."""
    return reduce(_followed, chain)


def _followed(chain: Seen, after: Seen) -> Seen:
    absent = [span for span in chain.missing for span in _without(span, after)]
    between = gaps(chain.number + 1, after.first - 1, ())
    behind = (span for span in after.missing if span.last > chain.number)
    absent += [*between, *(Span(max(each.first, chain.number + 1), each.last) for each in behind)]
    number = max(chain.number, after.number)
    return replace(after, number=number, missing=tuple(absent), first=min(chain.first, after.first))


def _without(span: Span, other: Seen) -> tuple[Span, ...]:
    ends = Span(span.first, other.first - 1), Span(other.number + 1, span.last)
    absent = (
        Span(max(each.first, span.first), min(each.last, span.last))
        for each in (ends[0], *other.missing, ends[1])
    )
    return tuple(each for each in absent if each.first <= each.last)


def _extended(known: Seen, numbers: Collection[int]) -> Seen:
    """Return a process with further journals."""
    absent = [span for old in known.missing for span in gaps(old.first, old.last, numbers)]
    first, last = min([known.first, *numbers]), max([known.number, *numbers])
    absent = [*gaps(first, known.first - 1, numbers), *absent]
    absent += gaps(known.number + 1, last, numbers)
    return replace(known, number=last, missing=tuple(absent), first=first)


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
