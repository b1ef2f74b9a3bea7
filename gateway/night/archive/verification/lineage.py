"""The journals of one writer as lineages: seals of which each names the one before.

An intact chain is one lineage. A second one begins where a predecessor is missing, where a chain
begins again, or where two processes write under one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from gateway.night.archive.seals.seal import End, Seal


def lineages(seals: Sequence[Seal]) -> list[list[Seal]]:
    """Return the lineages of the seals of one writer, by the time at which each begins.

    Of two seals that name the same predecessor, the second begins a lineage.
    """
    found: list[list[Seal]] = []
    ends: dict[tuple[str | None, int], list[Seal]] = {}  # by the last journal and what follows it
    by_stem = {seal.journal: seal for seal in seals}
    for seal in sorted(by_stem.values(), key=lambda seal: (seal.sequence, _begin(seal))):
        before = seal.previous.journal if seal.previous else None
        lineage = ends.pop((before, seal.sequence), [])
        if not lineage:
            found.append(lineage)
        lineage.append(seal)
        ends[seal.journal, seal.sequence + 1] = lineage
    return sorted(found, key=lambda lineage: _begin(lineage[0]))


def contradictions(lineage: Sequence[Seal]) -> Iterator[tuple[Seal, Seal, str]]:
    """Yield the neighbours of which the later one describes another predecessor, and how."""
    for earlier, later in pairwise(lineage):
        link = later.previous
        assert link is not None  # noqa: S101  # only the first one of a lineage may have none
        if link.taken:
            continue  # nobody knew its end
        if link.digest != earlier.link.digest:
            yield earlier, later, "names another content of its predecessor"
        elif link.closed != earlier.closed:
            yield earlier, later, "names another end of its predecessor"


def is_stopped(seal: Seal) -> bool:
    """Return whether the gateway stopped in good order with this journal."""
    return seal.end is End.STOPPED


def _begin(seal: Seal) -> tuple[int, int, str]:
    return seal.opened, seal.sequence, seal.journal
