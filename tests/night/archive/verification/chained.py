"""Sealed archives of two gateways, and the rules of what a verification finds in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import pyarrow as pa

from gateway.archive.findings import Weight
from gateway.archive.journal.local_head import number_of
from gateway.archive.layout import HOUR, JournalName, writer_name
from gateway.archive.signed_json import NO_TERM, Previous, Term
from gateway.archive.storage import LocalStorage, Storage
from gateway.night.archive.seals.seal import End, Seal
from gateway.night.archive.seals.store import seal_path
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.night.archive.verification.verify import Verified, verify_day
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.samples import DAY, NOON, START, delivered, received

MIDNIGHT = NOON - 12 * HOUR
SECOND = 1_000_000
AFTER = DAY + timedelta(days=9)  # the current date of the verifications
KEY = b"a key of the seals"


@dataclass
class Chained:
    """Journals of gateways as chains of seals in one archive."""

    storage: Storage
    key: bytes | None = None
    links: dict[str, Previous] = field(default_factory=dict)
    seals: list[Seal] = field(default_factory=list)

    def add(  # the facts of one journal
        self,
        gateway: str,
        opened: int,
        closed: int,
        *,
        end: End = End.CLOSED,
        start: int = START,
        rows: int = 1,
        answer_after: int = 0,
        previous: Previous | None = None,
        instance: str = "",
        lease: Term = NO_TERM,
    ) -> Seal:
        """Seal a journal with a row a second from its opening on, after the last of its writer.

        The target takes `answer_after` microseconds for the answer to the last one.
        """
        writer = writer_name(gateway, instance)
        before = previous or self.links.get(writer)
        number = number_of(before) + 1
        seal = write_sealed(
            self.storage,
            str(JournalName(writer, start, number)),
            rows_at(gateway, [opened + each * SECOND for each in range(rows)], answer_after),
            gateway=gateway,
            previous=before,
            opened=opened,
            closed=closed,
            end=end,
            lease=lease,
            key=self.key,
        )
        self.links[writer] = seal.link
        self.seals.append(seal)
        return seal

    def day(self, gateways: Sequence[str] = ("east", "west")) -> Chained:
        """Fill a day and its surroundings with four journals of each gateway."""
        for gateway in gateways:
            self.add(gateway, MIDNIGHT - 2 * HOUR, MIDNIGHT - HOUR)
            self.add(gateway, MIDNIGHT - HOUR, MIDNIGHT + SECOND, rows=2)
            self.add(gateway, MIDNIGHT + SECOND, NOON, rows=3)
            self.add(gateway, NOON, MIDNIGHT + 24 * HOUR + SECOND, rows=4)
            self.add(gateway, MIDNIGHT + 24 * HOUR + SECOND, MIDNIGHT + 30 * HOUR, end=End.STOPPED)
        return self

    def verify(self, day: date = DAY, journals: Path | None = None) -> Verified:
        return verify_day(self.storage, day, self.key, journals=journals, today=AFTER)


@cache
def _template(
    key: bytes | None, gateways: Sequence[str]
) -> tuple[TemporaryDirectory[str], Chained]:
    folder = TemporaryDirectory()
    return folder, chained(Path(folder.name), key).day(gateways)


def sealed_day(
    root: Path, key: bytes | None = None, gateways: Sequence[str] = ("east", "west")
) -> Chained:
    """A copy of an archive that `Chained.day` made, which is quicker than another one."""
    folder, made = _template(key, gateways)
    copytree(folder.name, root, dirs_exist_ok=True)
    return Chained(LocalStorage(root), key, dict(made.links), list(made.seals))


def rows_at(gateway: str, times: Sequence[int], answer_after: int = 0) -> pa.Table:
    batches = []
    for number, time in enumerate(times):
        taken = time + (answer_after if number == len(times) - 1 else 0)
        batches += [
            received([number], time=time, gateway=gateway, received=time),
            delivered([number], time=taken, gateway=gateway, received=time),
        ]
    return sort_rows(to_table(batches)[0])


def chained(root: Path, key: bytes | None = None) -> Chained:
    return Chained(LocalStorage(root), key)


def file_of(root: Path, seal: Seal) -> Path:
    return root / seal_path(seal)


def segment_of(root: Path, seal: Seal) -> Path:
    return root / seal.segments[0].path


def errors(verified: Verified) -> list[str]:
    return [found.rule for found in verified.findings if found.weight is Weight.ERROR]


def warnings(verified: Verified) -> list[str]:
    return [found.rule for found in verified.findings if found.weight is Weight.WARNING]
