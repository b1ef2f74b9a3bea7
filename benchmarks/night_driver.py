"""Measures a night of many gateways: what its driver holds, and the requests that a bucket gets.

    python -m benchmarks.night_driver [--gateways N] [--messages N] [--folder DIR] [--bucket]

One gateway writes a day of N messages; the others are its copies under other names. The segments
hold their id sets and name pairs, and no rows, so that 1,000,000,000 rows of 200 gateways take a
gigabyte of disk. With --bucket an S3 server (moto) has the archive and counts its requests.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa

from benchmarks.tree import PeakMemory, resident, tree
from gateway.archive.heads import from_json, head_path
from gateway.archive.signed_json import StoredDigest
from gateway.archive.storage import LocalStorage, RemoteStorage
from gateway.night.archive.parquet import PAIRS_KEY, SETS_KEY, append_tables, row_group_writer
from gateway.night.archive.seals.seal import Seal, SegmentEntry
from gateway.night.archive.seals.store import read_seals, seal_days, seal_path
from gateway.night.archive.segments.reading import open_parquet
from gateway.night.archive.segments.tables import SCHEMA
from gateway.trial.synthetic.generate_archive import generate
from gateway.trial.synthetic.traffic import Traffic
from tests.archive.bucket import Bucket

DAY = date(2026, 3, 14)
SEGMENT = 45_000  # messages of a journal, and at most a quarter of an hour of them
QUARTERS = 96
REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) /night/?(\S*) HTTP")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateways", type=int, default=20)
    parser.add_argument("--messages", type=int, default=2_500_000, help="of each gateway")
    parser.add_argument("--folder", type=Path, help="folder for the archives (temporary)")
    parser.add_argument("--bucket", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        one, root = folder / "one", folder / "archive"
        if not one.exists():
            traffic = Traffic(args.messages, DAY, routes=10)
            generate(one, traffic, {}, segment=min(SEGMENT, args.messages // QUARTERS))
        if not root.exists():
            copy(one, root, args.gateways)
        files = [path for path in root.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{args.gateways} gateways, {2 * args.gateways * args.messages:,} rows")
        print(f"  {len(files):,} files, {size:,.0f} MB without the rows")
        if args.bucket:
            with served(root, folder / "requests") as url:
                night(url)
            for name, number in sorted(requests(folder / "requests").items()):
                print(f"  {name:32} {number:8,}")
        else:
            night(str(root))


def copy(one: Path, root: Path, gateways: int) -> None:
    """Write the archive of `one` for each gateway, without its rows."""
    storage = LocalStorage(one)
    found = [each.seal for day in seal_days(storage) for each in read_seals(storage, day)]
    seals = [each for each in found if isinstance(each, Seal)]
    tables: dict[str, dict[bytes, pa.Table]] = {}
    for path in (entry.path for seal in seals for entry in seal.segments):
        with open_parquet(storage.open(Path(path))) as file:
            tables[path] = {key: file.beside(key) for key in (SETS_KEY, PAIRS_KEY)}
    content = storage.read(head_path(seals[0].writer))
    assert content is not None
    head = from_json(content)
    for number in range(gateways):
        name = f"gateway{number:03}"
        renamed = [_renamed(root, name, seal, tables) for seal in seals]
        for seal in renamed:
            _put(root / seal_path(seal), seal.signed(None).to_json())
        own = replace(head, writer=name, gateway=name, closed=renamed[-1].link).signed(None)
        _put(root / head_path(name), own.to_json())


def _renamed(root: Path, name: str, seal: Seal, tables: dict[str, dict[bytes, pa.Table]]) -> Seal:
    """Write the segments of a seal for the gateway `name`; return its seal."""
    writer = seal.writer
    entries: list[SegmentEntry] = []
    for entry in seal.segments:
        content = pa.BufferOutputStream()
        with row_group_writer(SCHEMA, content) as parquet:
            own = {key: _named(table, name) for key, table in tables[entry.path].items()}
            append_tables(parquet, content, own)
        path = entry.path.replace(writer, name)
        stored = _put(root / path, content.getvalue().to_pybytes())
        entries.append(replace(entry, path=path, sha256=stored.sha256, size=stored.size))
    previous = seal.previous
    if previous is not None:
        previous = replace(previous, journal=previous.journal.replace(writer, name))
    return replace(
        seal, writer=name, gateway=name, journal=seal.journal.replace(writer, name),
        previous=previous, segments=tuple(entries),
    )  # fmt: skip


def _named(table: pa.Table, name: str) -> pa.Table:
    place = table.schema.get_field_index("gateway")
    return table.set_column(place, "gateway", pa.array([name] * len(table)))


def _put(path: Path, content: bytes) -> StoredDigest:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return StoredDigest(hashlib.sha256(content).hexdigest(), len(content))


def night(archive: str) -> None:
    """Run a night of `archive`, and print its verdict, its time and the memory of its processes."""
    began = time.monotonic()
    command = [sys.executable, "-m", "gateway", "reconcile", archive]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as child:  # noqa: S603
        own = PeakMemory(lambda: resident(child.pid) / 1e6)
        with own as driver, PeakMemory(lambda: _others(child.pid)) as others:
            printed, _ = child.communicate()
    print(next(line for line in printed.splitlines() if line.startswith(("Clean", "Not clean"))))
    print(f"  {'seconds':32} {time.monotonic() - began:8,.0f}")
    print(f"  {'the command, MB':32} {driver.megabytes:8,.0f}")
    print(f"  {'Java and its Python, MB':32} {others.megabytes:8,.0f}")


def _others(pid: int) -> float:
    return sum(map(resident, tree(pid)[1:])) / 1e6


@contextmanager
def served(root: Path, log: Path) -> Iterator[str]:
    """Put the archive into the bucket of an S3 server, which writes its requests to `log`."""
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")  # noqa: S106
    bucket = Bucket()
    try:
        bucket.start(str(log))
        storage = RemoteStorage(bucket.url)
        for path in root.rglob("*"):
            if path.is_file():
                storage.put(path.relative_to(root), path.read_bytes())
        os.truncate(log, 0)
        yield bucket.url
    finally:
        bucket.stop()


def requests(log: Path) -> Counter[str]:
    """Count the requests by method and by the kind of object."""
    found: Counter[str] = Counter()
    for line in log.read_bytes().splitlines():
        if match := REQUEST.search(line):
            path = match[2].decode().removeprefix("gateway/archive/")
            kind = "list" if "?" in path.split("/")[0] else path.split("/")[0].split("=")[0]
            found[f"{match[1].decode()} {kind}"] += 1
    return found


if __name__ == "__main__":
    main()
