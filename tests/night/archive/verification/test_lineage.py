"""The journals of a writer follow each other as their seals state it."""

from __future__ import annotations

from gateway.night.archive.seals.seal import End, Seal
from gateway.night.archive.verification.lineage import contradictions, lineages
from tests.archive.samples import NOON, START


def seal(journal: str, sequence: int) -> Seal:
    return Seal(
        "edge", "edge", journal, START, sequence, NOON, NOON, None, "0", End.CLOSED, rows=0, size=0
    )


def test_a_seal_without_a_predecessor_follows_none_that_has_no_name() -> None:
    first, second = seal("", 0), seal("edge-1", 1)

    found = lineages([first, second])

    assert found == [[first], [second]]
    assert not [each for lineage in found for each in contradictions(lineage)]
