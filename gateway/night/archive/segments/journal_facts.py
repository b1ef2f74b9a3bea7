"""The facts of a closed journal that its seal states: its place in the chain, end and damages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gateway.archive.journal.ends import (
    Head,
    Trailer,
    has_inner_trailer,
    head_of,
    link_of,
    read_head,
    read_trailer,
)
from gateway.archive.journal.records import MAGIC, Damage
from gateway.archive.layout import JournalName
from gateway.archive.seal_key import proving_keys
from gateway.archive.signed_json import Previous, new_hash
from gateway.archive.storage import Storage
from gateway.night.archive.seals.seal import End, Seal, SealedDamage
from gateway.night.archive.seals.store import link_path, read_seal

CUT: Final = "acknowledged rows are missing at the end"
_SKIPPED: Final = "damaged record skipped"


@dataclass(frozen=True)
class JournalFacts:
    """A journal that no process writes.

    A journal without a complete record has no rows, and gets no seal.
    """

    stem: str
    name: JournalName
    data: bytes
    acknowledged: int | None  # bytes; None when their file is absent
    key: bytes | None

    @cached_property
    def head(self) -> Head:
        return head_of(self.name, self.data)

    @cached_property
    def trailer(self) -> Trailer | None:
        return trailed[0] if (trailed := read_trailer(self.data)) else None

    @cached_property
    def link(self) -> Previous | None:
        return link_of(self.stem, self.data, self.acknowledged)

    @property
    def stopped(self) -> bool:
        """Whether its gateway stopped in good order with it."""
        return self.trailer is not None and self.trailer.stopped

    @cached_property
    def size(self) -> int:
        """Bytes before the trailer."""
        return trailed[1] if (trailed := read_trailer(self.data)) else len(self.data)

    def existing_seal(self, storage: Storage) -> Seal | None:
        """Return the seal of an earlier conversion of the same bytes; None without one.

        Raises:
            OSError: the storage cannot be read.
        """
        if self.link is None:
            return None
        seal = read_seal(storage, link_path(self.link)).seal
        if not isinstance(seal, Seal) or not seal.has_valid_mac(self.key):
            return None
        same = seal.digest == self._stated_digest and seal.keyed == (self.key is not None)
        return seal if same else None

    def damages(self, found: Sequence[Damage], rows: int) -> tuple[SealedDamage, ...]:
        """Return the damages that cost rows; `rows` are the rows of the readable records."""
        sealed = [SealedDamage(each.offset, each.size, _SKIPPED) for each in found if not each.torn]
        if self.link is None:
            return tuple(sealed)
        if read_head(self.data) is None:
            sealed.append(SealedDamage(len(MAGIC), 0, "no head"))
        if has_inner_trailer(self.data):
            sealed.append(SealedDamage(self.size, 0, "records follow the trailer"))
        if self.trailer is None:
            end = next((each.offset for each in found if each.torn), len(self.data))
            return (*sealed, *self._lost_tail(end))
        if not sealed and self._differs(self.trailer, rows):
            sealed.append(SealedDamage(0, self.size, "content differs from the trailer"))
        return tuple(sealed)

    def seal(self, damages: tuple[SealedDamage, ...], rows: int, lost_values: int) -> Seal | None:
        """Return the seal of the journal without its segments; None when it gets none."""
        if self.link is None:
            return None
        return Seal(
            writer=self.name.writer,
            gateway=self.head.gateway,
            journal=self.stem,
            start=self.name.start,
            sequence=self.name.number,
            opened=self.head.opened,
            closed=self.link.closed,
            previous=self.head.previous,
            digest=self._stated_digest,
            end=_end_of(self.trailer),
            rows=rows,
            size=self.size,
            damages=damages,
            lost_values=lost_values,
            lease=self.head.lease,
        )

    @cached_property
    def _stated_digest(self) -> str:
        """The digest in the trailer, which the next journal names; else that of the bytes."""
        return self._digest(self.key) if self.trailer is None else self.trailer.digest

    def _digest(self, key: bytes | None) -> str:
        return new_hash(key, self.data[: self.size]).hexdigest()

    def _lost_tail(self, end: int) -> list[SealedDamage]:
        """Return the damage of a journal without a trailer whose records end at `end`."""
        if self.acknowledged is None:
            return [SealedDamage(end, 0, "the number of acknowledged bytes is missing")]
        lost = self.acknowledged - end
        return [SealedDamage(end, lost, CUT)] if lost > 0 else []

    def _differs(self, trailer: Trailer, rows: int) -> bool:
        if (trailer.rows, trailer.size) != (rows, self.size):
            return True
        if self.head.keyed and self.key is None:
            return False  # only a holder of the key can compare the digest
        keys = proving_keys(self.key) if self.head.keyed else (None,)
        return trailer.digest not in map(self._digest, keys)


def _end_of(trailer: Trailer | None) -> End:
    if trailer is None:
        return End.KILLED
    return End.STOPPED if trailer.stopped else End.CLOSED
