"""The journals of one writer as lineages: seals of which each names the one before.

An intact chain is one lineage. A second one begins where a predecessor is missing, where a chain
begins again, or where two processes write under one name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gateway.archive.seals.seal import End, Seal


def lineages(seals: Sequence[Seal]) -> list[list[Seal]]:
    """Return the lineages of the seals of one writer, by the time at which each begins.

    Of two seals that name the same predecessor, the second begins a lineage.
    """
    by_stem = {seal.journal: seal for seal in seals}
    successors: dict[str, list[Seal]] = defaultdict(list)
    first: list[Seal] = []
    for seal in sorted(by_stem.values(), key=_begin):
        if seal.previous is not None and _is_before(by_stem.get(seal.previous.journal), seal):
            successors[seal.previous.journal].append(seal)
        else:
            first.append(seal)
    for followers in successors.values():
        first += followers[1:]
    return [list(_followed(seal, successors)) for seal in sorted(first, key=_begin)]


def contradictions(lineage: Sequence[Seal]) -> Iterator[tuple[Seal, Seal, str]]:
    """Yield the neighbours of which the later one describes another predecessor, and how."""
    for earlier, later in pairwise(lineage):
        link = later.previous
        if link is None:
            continue  # never in a lineage
        if link.digest != earlier.link.digest:
            yield earlier, later, "names another content of its predecessor"
        elif link.closed != earlier.closed:
            yield earlier, later, "names another end of its predecessor"


def is_stopped(seal: Seal) -> bool:
    """Return whether the gateway stopped in good order with this journal."""
    return seal.end is End.STOPPED


def _begin(seal: Seal) -> tuple[int, int, str]:
    return seal.opened, seal.sequence, seal.journal


def _is_before(earlier: Seal | None, later: Seal) -> bool:
    return earlier is not None and earlier.sequence + 1 == later.sequence


def _followed(seal: Seal, successors: dict[str, list[Seal]]) -> Iterator[Seal]:
    following: Seal | None = seal
    while following is not None:
        yield following
        following = next(iter(successors.get(following.journal, ())), None)
