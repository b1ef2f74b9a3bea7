"""The archive as a night finds it, as values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from gateway.archive.night_record import HeadSeen
from gateway.archive.signed_json import Previous


@dataclass(frozen=True, slots=True)
class NewJournal:
    """A journal with a seal that no night judged.

    `concerns` are the dates of its rows, and those kept ones that it proves.
    """

    writer: str
    start: int
    number: int
    mac: str
    concerns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    """The archive as a night finds it.

    `kept` are the dates with rows, `results` those with published results, and `live` the writers
    whose process is known to run. `heads` are those that their writers signed. `forgotten` are
    dates that were removed since the last night with rows that no night judged. `named` are the
    writers whose routes are archived. `sealed` are the dates with seals. By writer, `numbers` are
    those of its sealed journals, and `before` is the predecessor of the first of them.
    """

    today: date
    heads: Sequence[HeadSeen]
    journals: Sequence[NewJournal]
    kept: frozenset[str]
    results: frozenset[str]
    retired: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    sealed: frozenset[str] = frozenset()
    numbers: Mapping[str, Collection[int]] = field(default_factory=dict)
    before: Mapping[str, Previous] = field(default_factory=dict)

    @property
    def there(self) -> frozenset[str]:
        """The dates that were not removed."""
        return self.kept | self.sealed

    @property
    def oldest(self) -> str:
        """The first of them."""
        return min(self.there, default="")
