"""Counts what the driver of a night touches while it verifies, for any number of gateways.

    python -m benchmarks.night_driver [--gateways N] [--journals N]

The archive is made up while it is read: seals of the date and both neighbours, chained as gateways
write them, and hashes as executors send them. A day of ten billion rows therefore needs no disk.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import resource
from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from time import process_time

from gateway.archive.heads import WriterHead
from gateway.archive.heads import to_json as head_json
from gateway.archive.layout import HEADS, SEALS, JournalName, hour_folder, seal_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.seals.seal import End, Seal, SegmentEntry, to_json
from gateway.archive.signed_json import Previous, StoredDigest
from gateway.archive.storage import StoredFile
from gateway.archive.verification.verify import verify_day
from gateway.reconcile.input.inputs import list_inputs, microseconds
from gateway.reconcile.input.survey import survey_tasks

DAY = date(2026, 3, 14)
DATES = [DAY + timedelta(days=each) for each in (-1, 0, 1)]
START = microseconds(DATES[0])
BYTE = b"x"
DIGEST = StoredDigest(hashlib.sha256(BYTE).hexdigest(), len(BYTE))
TASKS = 400  # of 100 executors' cores


class PaperStorage:
    """The seals and files of `gateways`, each with `journals` a day, and counts of their uses."""

    def __init__(self, gateways: int, journals: int) -> None:
        self._gateways, self._journals = gateways, journals
        self._length = 86_400_000_000 // journals  # microseconds
        self.used: Counter[str] = Counter()
        self.seal_bytes = 0

    def names(self, folder: Path) -> list[str]:
        if folder in {Path(), Path(SEALS)}:
            return [f"date={each}" for each in DATES]
        if folder == Path(HEADS):
            return [f"gateway{each}.json" for each in range(self._gateways)]
        days = [each for each in DATES if folder == seal_folder(Path(), each)]
        found = [f"{self._stem(*each)}.json" for day in days for each in self._of_day(day)]
        self.used["seals listed"] += len(found)
        return found

    def files(self, folder: Path) -> list[StoredFile]:
        days = [each for each in DATES if folder.parts[0] == f"date={each}"]
        if not days:
            return []
        found = [StoredFile(self._path(*each), 1) for each in self._of_day(days[0])]
        self.used["segments listed"] += len(found)
        return found

    def read(self, path: Path) -> bytes | None:
        if path.parts[0] == HEADS:
            self.used["heads read"] += 1
            return head_json(self._head(int(path.stem.removeprefix("gateway"))))
        if path.suffix != ".json" or path.parts[0] != SEALS:
            return None
        gateway, _, number = path.stem.rsplit("-", 2)
        content = to_json(self._seal(int(gateway.removeprefix("gateway")), int(number)))
        self.used["seals read"] += 1
        self.seal_bytes += len(content)
        return content

    def hash_files(self, files: Mapping[Path, int]) -> dict[Path, StoredDigest]:
        """Return the hashes that executors would send."""
        self.used["hashes of segments"] += len(files)
        return dict.fromkeys(files, DIGEST)

    def owns(self, folder: Path) -> bool:
        del folder
        return True

    def _of_day(self, day: date) -> list[tuple[int, int]]:
        first = DATES.index(day) * self._journals
        last = self._ends()[day]
        numbers = range(first, first + last)
        return [(gateway, number) for gateway in range(self._gateways) for number in numbers]

    def _head(self, gateway: int) -> WriterHead:
        """Return the head of a gateway that writes the journal after its last seal."""
        sealed = sum(self._ends().values())
        last = self._seal(gateway, sealed - 1)
        name = f"gateway{gateway}"
        opened = self._stem(gateway, sealed)
        return WriterHead(name, name, last.closed + 1, last.link, opened).signed(None)

    def _ends(self) -> dict[date, int]:
        """Return the number of sealed journals of each date; it is six o'clock on the last."""
        return {each: self._journals // (4 if each == DATES[-1] else 1) for each in DATES}

    @staticmethod
    def _stem(gateway: int, number: int) -> str:
        return str(JournalName(f"gateway{gateway}", START, number))

    def _path(self, gateway: int, number: int) -> Path:
        opened = START + number * self._length
        return hour_folder(Path(), opened) / f"{self._stem(gateway, number)}-0000.parquet"

    @lru_cache(maxsize=4)  # noqa: B019  # of one run
    def _seal(self, gateway: int, number: int) -> Seal:
        opened = START + number * self._length
        closed = opened + self._length - 1
        path = self._path(gateway, number).as_posix()
        entry = SegmentEntry(path, 69_444, 1, DIGEST.sha256, opened, opened, 0)
        before = Previous(self._stem(gateway, number - 1), DIGEST.sha256, opened - 1)
        return Seal(
            f"gateway{gateway}", f"gateway{gateway}", self._stem(gateway, number), START, number,
            opened, closed, before if number else None, DIGEST.sha256, End.CLOSED, 69_444,
            4_000_000, segments=(entry,),
        ).signed(None)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateways", type=int, default=10)
    parser.add_argument("--journals", type=int, default=1_440, help="of a gateway and date")
    args = parser.parse_args()
    storage = PaperStorage(args.gateways, args.journals)
    began = process_time()
    verified = verify_day(
        storage,  # type: ignore[arg-type]  # all it calls
        DAY,
        today=DATES[-1],
        hash_files=storage.hash_files,
    )
    seconds = process_time() - began
    assert verified.complete, verified.findings[:3]
    began = process_time()
    segments = list_inputs(storage, DAY).all  # type: ignore[arg-type]  # as above
    listed = process_time() - began
    print(f"{args.gateways} gateways, {args.journals} journals each a day")
    for name, number in sorted(storage.used.items()):
        print(f"  {name:16} {number:10,}")
    print(f"  {'seals':16} {storage.seal_bytes / 1e6:10,.1f} MB")
    print(f"  {'verified in':16} {seconds:10,.1f} s of one core, with making the seals up")
    print(f"  {'listed in':16} {listed:10,.1f} s of one core, without the requests")
    began = process_time()
    tasks = survey_tasks(ArchiveLocation(Path("archive")), DAY, segments, TASKS, full=False)
    size = sum(len(pickle.dumps(each)) for each in tasks)
    print(f"  {'tasks':16} {size / 1e6:10,.1f} MB, {process_time() - began:,.1f} s")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"  {'memory':16} {memory:10,.0f} MB at most")


if __name__ == "__main__":
    main()
