"""The journals of one gateway over several starts, kills and conversions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.archive.heads import StoredHead, read_head
from gateway.archive.journal import rolling
from gateway.archive.journal.local_head import LocalHead
from gateway.archive.journal.records import Rows, pack
from gateway.archive.journal.rolling import ArchiveOptions, RollingJournal
from gateway.archive.layout import HOUR, journals, writer_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage
from gateway.night.archive.seals.store import read_seals
from gateway.night.archive.segments import convert
from gateway.night.archive.verification.verify import Verified, verify_day
from tests.archive.no_converter import NoConverter
from tests.archive.samples import DAY, NOON, QUICK, START, received
from tests.archived import read_rows

KEY = b"a key of the seals"
MIDNIGHT = NOON + 12 * HOUR
IDLE = replace(QUICK, close_seconds=0)  # its converter is killed before it begins


@dataclass
class Process:
    """A gateway's journal without its threads, at a clock that the test sets."""

    root: Path
    start: int = START
    options: ArchiveOptions = QUICK
    replay: bool = False
    time: int = NOON
    url: str = ""  # of a remote archive, whose buffer is `root`
    journal: RollingJournal = field(init=False)

    def __post_init__(self) -> None:
        writer, key = writer_name("edge", replay=self.replay), self.options.seal_key
        head = LocalHead(self.root, "edge", writer, key, lambda: self.time)
        location = ArchiveLocation(self.root, self.url)
        self.journal = RollingJournal(location, head, self.start, self.options)

    def write(self, *numbers: int) -> None:
        rows = received(numbers, time=self.time)
        rows = Rows(rows.count, {**rows.common, "gateway": "edge"}, rows.columns)
        self.journal.write(pack([rows]), len(numbers))

    @property
    def path(self) -> Path:
        assert self.journal._journal is not None  # noqa: SLF001  # the file of this process
        return self.journal._journal.path  # noqa: SLF001

    def kill(self) -> Path:
        """End the process: its locks are released, and nothing else happens."""
        opened, path = self.journal._journal, self.path  # noqa: SLF001
        assert opened is not None
        os.close(opened._file)  # noqa: SLF001
        os.close(opened._acknowledged)  # noqa: SLF001
        self.journal._lock.close()  # noqa: SLF001
        return path

    def stop(self) -> None:
        self.journal.close(0)


@pytest.fixture(autouse=True)
def no_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "Converter", NoConverter)


def convert_all(root: Path, key: bytes | None = None) -> None:
    for path in journals(root):
        convert.convert(root, path, key=key)


def verified(root: Path, key: bytes | None = None) -> Verified:
    today = DAY + timedelta(days=3)
    return verify_day(LocalStorage(root), DAY, key, journals=root, today=today)


def head_of(root: Path) -> StoredHead:
    return read_head(root, "edge")


def numbers(root: Path) -> list[int]:
    return sorted(int.from_bytes(row["id"][8:], "big") for row in read_rows(root, DAY))


def sequences(root: Path) -> list[tuple[int, str]]:
    found = [stored.seal for stored in read_seals(LocalStorage(root), DAY)]
    return [(seal.sequence, seal.end.value) for seal in found]  # type: ignore[union-attr]
