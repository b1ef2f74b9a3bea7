"""The order in which a gateway's disk gets what belongs together, checked when rows are durable.

A kill at that moment leaves just this much, so no kill is needed to find a wrong order.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.archive.journal.records import Damage, read_records
from tests.simulation.books import each_row
from tests.simulation.disk import Disk

_RECEIPTS = frozenset({"received", "spooled"})  # legs
_OUTCOMES = frozenset({"delivered", "dead"})


class RowOrder:
    """The rows of one disk.

    Mutable: knows each receipt.
    """

    def __init__(
        self, disk: Disk, report: Callable[[str, str], None], *, keeps_letters: bool
    ) -> None:
        self._disk, self._report, self._keeps_letters = disk, report, keeps_letters
        self._received: set[bytes] = set()

    def check(self, records: bytes) -> None:
        """Check records that became durable.

        An outcome has the receipt of its copy before it or beside it, and a dead one its letter.
        """
        found = [each for each in read_records(records, 0) if not isinstance(each, Damage)]
        rows = [row for batches in found for each in batches for row in each_row(each)]
        self._received |= {row["id"] for row in rows if row["leg"] in _RECEIPTS}
        if self._disk.changed:
            return  # a damaged row of the spool has no receipt, and a damaged file no letters
        ended = [row for row in rows if row["leg"] in _OUTCOMES]
        for row in ended:
            if row["id"] not in self._received:
                self._report("outcome-before-receipt", self._text(row))
        dead = [row for row in ended if row["leg"] == "dead" and self._keeps_letters]
        letters = self._disk.letter_ids() if dead else set()
        for row in dead:
            if row["id"] not in letters:
                self._report("row-before-letter", self._text(row))

    def _text(self, row: dict[str, object]) -> str:
        return f"{self._disk.folder.name}: {row['source_name']} for {row['target']}: {row['leg']}"
