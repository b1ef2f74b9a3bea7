"""Faults of archives that `tampering` writes: what an accident or a forger does to their files.

Each fault has the rules of which one must be found, and those that may be found beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.journal.ends import read_trailer
from gateway.archive.journal.file import acknowledged_size
from gateway.archive.journal.records import Cell, Damage, record_spans
from gateway.archive.layout import HOUR, SEALS, day_folder
from gateway.night.archive.parquet import SETS_KEY
from gateway.night.archive.segments.convert import convert
from tests.archive.samples import DAY
from tests.night.reconcile.tampering import MIDNIGHT, Archive, Span, write_chain

FOLDER = day_folder(Path(), DAY)


@dataclass(frozen=True)
class Fault:
    """A fault; `plant` returns False where the archive has nothing to do it to."""

    plant: Callable[[Archive, random.Random], bool]
    found: frozenset[str]
    beside: frozenset[str] = frozenset()


def segments(archive: Archive) -> list[Path]:
    return sorted((archive.root / FOLDER).glob("hour=*/*.parquet"))


def seals(archive: Archive) -> list[Path]:
    """The seals of journals and compactions with rows of the day."""
    return [
        path
        for path in sorted((archive.root / SEALS).glob("date=*/*.json"))
        if any(each["path"].startswith(f"{FOLDER}/") for each in parsed(path)["segments"])
    ]


def parsed(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def removed(archive: Archive, rng: random.Random) -> bool:
    rng.choice(segments(archive)).unlink()
    return True


def copied(archive: Archive, rng: random.Random) -> bool:
    segment = rng.choice(segments(archive))
    shutil.copy(segment, segment.with_name(f"copy-{segment.name}"))
    return True


def swapped(archive: Archive, rng: random.Random) -> bool:
    if len(segments(archive)) < 2:
        return False
    one, other = rng.sample(segments(archive), 2)
    exchange(one, other)
    return True


def exchange(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def truncated(archive: Archive, rng: random.Random) -> bool:
    segment = rng.choice(segments(archive))
    os.truncate(segment, rng.randrange(segment.stat().st_size))
    return True


def edited(archive: Archive, rng: random.Random) -> bool:
    """One bit is changed, and the time of the file is kept."""
    spoil(rng.choice(segments(archive)), rng)
    return True


def spoil(path: Path, rng: random.Random) -> None:
    was, content = path.stat(), bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def rewritten(archive: Archive, rng: random.Random) -> bool:
    """A row is removed, and the Parquet file is written again with the same metadata and time."""
    segment = rng.choice(segments(archive))
    was, table = segment.stat(), pq.read_table(segment, partitioning=None)
    gone = rng.randrange(len(table))
    kept = pa.concat_tables([table.slice(0, gone), table.slice(gone + 1)])
    pq.write_table(kept, segment)
    os.utime(segment, ns=(was.st_atime_ns, was.st_mtime_ns))
    return True


def seal_removed(archive: Archive, rng: random.Random) -> bool:
    rng.choice(seals(archive)).unlink()
    return True


def seal_edited(archive: Archive, rng: random.Random) -> bool:
    path = rng.choice(seals(archive))
    document = parsed(path)
    document["segments"][0]["rows"] += 1
    path.write_text(json.dumps(document))
    return True


def seal_spoilt(archive: Archive, rng: random.Random) -> bool:
    spoil(rng.choice(seals(archive)), rng)
    return True


def seals_swapped(archive: Archive, rng: random.Random) -> bool:
    if len(seals(archive)) < 2:
        return False
    exchange(*rng.sample(seals(archive), 2))
    return True


def forged(archive: Archive, rng: random.Random) -> bool:
    """A row is removed, and the seal is made again as a forger without the key can."""
    if archive.key is None:
        return False
    segment = rng.choice(segments(archive))
    name = segment.relative_to(archive.root).as_posix()
    path, document, entry = next(
        (path, document, entry)
        for path in seals(archive)
        for document in [parsed(path)]
        for entry in document["segments"]
        if entry["path"] == name
    )
    table = pq.read_table(segment, partitioning=None)
    pq.write_table(table.slice(1), segment)
    content = segment.read_bytes()
    entry |= {"rows": len(table) - 1, "size": len(content)}
    entry["sha256"] = hashlib.sha256(content).hexdigest()
    document["keyed"] = rng.random() < 0.5
    del document["mac"]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    document["mac"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(document))
    return True


def sets_edited(archive: Archive, rng: random.Random) -> bool:
    path = rng.choice(segments(archive))
    content = bytearray(path.read_bytes())
    begin, size = map(int, pq.read_metadata(path).metadata[SETS_KEY].split())
    content[begin + rng.randrange(size)] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    return True


def gateway_removed(archive: Archive, rng: random.Random) -> bool:
    """All that a gateway wrote since the midnight of the day is gone; the day before remains."""
    if archive.compacted:
        return False
    gateway = rng.choice(sorted(archive.gateways))
    for path in sorted(archive.root.rglob(f"{gateway}-*")):
        if f"date={DAY}" <= path.parent.name or f"date={DAY}" <= path.parent.parent.name:
            path.unlink()
    shutil.rmtree(archive.root / ".journal")
    return any(segment for segment in (archive.root / SEALS).glob(f"date=*/{gateway}-*"))


def rest_of_the_day_removed(archive: Archive, rng: random.Random) -> bool:
    """All files that were written after an hour of the day are gone.

    Nothing tells a gateway that had stopped by then from one that stopped for good.
    """
    if archive.compacted:
        return False
    after = MIDNIGHT + rng.randrange(1, 24) * HOUR
    for path in sorted((archive.root / SEALS).glob("date=*/*.json")):
        document = parsed(path)
        if document["closed"] >= after:
            for entry in document["segments"]:
                (archive.root / entry["path"]).unlink()
            path.unlink()
    shutil.rmtree(archive.root / ".journal")
    last = {
        document["writer"]: document["end"]
        for path in sorted((archive.root / SEALS).glob("date=*/*.json"))
        for document in [parsed(path)]
    }
    return any(end != "stopped" for end in last.values())


def moved_to_another_date(archive: Archive, rng: random.Random) -> bool:
    segment = rng.choice(segments(archive))
    to = Path(str(segment).replace(f"date={DAY}", "date=2026-03-12"))
    to.parent.mkdir(parents=True, exist_ok=True)
    segment.rename(to)
    return True


def moved_to_another_hour(archive: Archive, rng: random.Random) -> bool:
    segment = rng.choice(segments(archive))
    hour = int(segment.parent.name[-2:])
    to = segment.parent.with_name(f"hour={(hour + 1) % 24:02}")
    to.mkdir(exist_ok=True)
    segment.rename(to / f"moved-{segment.name}")
    return True


def moved_here(archive: Archive, rng: random.Random) -> bool:
    """A segment of another date lies in the folder of the day."""
    others = [
        path
        for path in sorted(archive.root.glob("date=*/hour=*/*.parquet"))
        if path not in segments(archive)
    ]
    if not others:
        return False
    to = archive.root / FOLDER / "hour=12"
    to.mkdir(parents=True, exist_ok=True)
    shutil.copy(rng.choice(others), to / "guest-1-000000-0000.parquet")
    return True


def second_gateway_of_one_name(archive: Archive, rng: random.Random) -> bool:
    """Another host wrote under the name of a gateway, with journals of its own."""
    gateway = rng.choice(sorted(archive.gateways))
    first, *_ = archive.gateways[gateway]
    start = first.start + rng.choice((0, 7))  # the same run, or another
    span = Span(MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR, start, "stop")
    row: dict[str, Cell] = {
        "route": "orders", "leg": "received", "endpoint": "plant", "system": "mqtt", "name": "x",
        "targets": [], "time": span.opened + 5, "id": bytes(16), "gateway": gateway,
    }  # fmt: skip
    host = Archive(archive.root / "_other", archive.key, archive.plan, archive.gateways)
    for path in write_chain(host, gateway, [span], [row], rng):
        convert(host.root, path, key=archive.key)
    for path in sorted(host.root.rglob("*")):
        to = archive.root / path.relative_to(host.root)
        if path.is_file() and ".journal" not in path.parts:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)
    shutil.rmtree(host.root)
    return True


def cut_trailer(path: Path) -> None:
    """Cut the trailer; of a journal without one, the last acknowledged byte."""
    trailed = read_trailer(path.read_bytes())
    os.truncate(path, trailed[1] if trailed else (acknowledged_size(path) or 1) - 1)


def cut_at_a_record(path: Path) -> None:
    data = path.read_bytes()
    spans = [span for span in record_spans(data) if not isinstance(span, Damage)]
    os.truncate(path, spans[-2 if read_trailer(data) else -1].start)


def damage_a_record(path: Path) -> None:
    data = bytearray(path.read_bytes())
    spans = [span for span in record_spans(bytes(data)) if not isinstance(span, Damage)]
    data[spans[1].stop - 1] ^= 0x40  # the first with rows
    path.write_bytes(data)


JOURNAL_FAULTS = {
    "trailer cut": cut_trailer,
    "cut at a record": cut_at_a_record,
    "record damaged": damage_a_record,
}
JOURNAL_RULES = frozenset({"torn-journal", "damaged-journal"})
UNSEALED = frozenset({"unsealed-segment", "no-seals"})
CHAIN = frozenset({"missing-seal", "open-chain", "forked-chain", "new-chain"})
HEADS = frozenset({"missing-head", "old-head"})  # a spoilt name or number is of no writer
DOUBT = frozenset(
    {
        "forged-seal", "unsigned-seal", "changed-segment", "missing-segment", "wrong-folder",
    }
)  # fmt: skip
FAULTS = {
    "removed": Fault(removed, frozenset({"missing-segment"})),
    "copied": Fault(copied, frozenset({"unsealed-segment"})),
    "swapped": Fault(swapped, frozenset({"changed-segment"})),
    "truncated": Fault(truncated, frozenset({"changed-segment"})),
    "edited": Fault(edited, frozenset({"changed-segment"})),
    "rewritten": Fault(rewritten, frozenset({"changed-segment"})),
    "seal removed": Fault(seal_removed, CHAIN | UNSEALED, DOUBT),
    "seal edited": Fault(seal_edited, frozenset({"forged-seal"}), CHAIN | UNSEALED | DOUBT),
    "seal spoilt": Fault(seal_spoilt, frozenset({"forged-seal"}), CHAIN | UNSEALED | DOUBT | HEADS),
    "seals swapped": Fault(seals_swapped, frozenset({"forged-seal"}), CHAIN | UNSEALED | DOUBT),
    "forged": Fault(forged, frozenset({"forged-seal", "unsigned-seal"}), CHAIN | UNSEALED | DOUBT),
    "sets edited": Fault(sets_edited, frozenset({"changed-segment"})),
    "gateway removed": Fault(gateway_removed, CHAIN, UNSEALED),
    "rest of the day removed": Fault(rest_of_the_day_removed, CHAIN, UNSEALED),
    "moved to another date": Fault(moved_to_another_date, frozenset({"missing-segment"})),
    "moved to another hour": Fault(
        moved_to_another_hour, frozenset({"missing-segment"}), frozenset({"unsealed-segment"})
    ),
    "moved here": Fault(moved_here, UNSEALED),
    "second gateway of one name": Fault(
        second_gateway_of_one_name,
        frozenset({"forked-chain"}),
        CHAIN | DOUBT | UNSEALED | {"old-head"},
    ),
}
