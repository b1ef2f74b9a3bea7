"""The nightly job against itself and against DuckDB: seconds, memory, and every fault found.

    python -m benchmarks.reconcile [--messages N ...] [--folder DIR] [--chart FILE]

Each size is an archive with 50 faults in 20 minutes and 90 % of its traffic on one route; the
smallest is made once more with even routes. What was measured is kept in DIR/figures.json, so that
a run that was stopped goes on from there; without a folder nothing is kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.picture import Line, picture
from benchmarks.tree import Most, together
from gateway.synthetic.generator import MANIFEST

DAY = "2026-03-14"
FAULTS = "loss=8,duplicate=7,alter=7,reorder=7,late=7,dead=7,unexpected=7"
MINUTES = 20
ROUTES = 4
SKEWED, EVEN = 0.9, 1 / ROUTES
CORES = 2
SIZES = (100_000, 1_000_000)
WAYS = ("digest-first", "full", "DuckDB")
MILLION = 1_000_000


@dataclass(frozen=True)
class Figure:
    """One run of one way: seconds of its own, seconds of Spark's start, most MB resident."""

    messages: int
    skew: float
    way: str
    seconds: float
    start: float
    megabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, nargs="+", default=SIZES)
    parser.add_argument("--folder", type=Path, help="for archives and figures (temporary)")
    parser.add_argument("--chart", type=Path, help="draw seconds against messages there, as SVG")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sizes = sorted(args.messages)
        figures = [
            figure
            for size, skew in [(sizes[0], EVEN), *((size, SKEWED) for size in sizes)]
            for figure in measured(folder, size, skew)
        ]
    show(figures)
    if args.chart is not None:
        args.chart.write_text(chart(figures), encoding="utf-8")


def measured(folder: Path, messages: int, skew: float) -> list[Figure]:
    """The figures of one archive: those that are kept, and those that are missing, measured."""
    kept = folder / "figures.json"
    known = [Figure(**each) for each in json.loads(kept.read_text())] if kept.exists() else []
    own = {each.way: each for each in known if (each.messages, each.skew) == (messages, skew)}
    missing = [way for way in WAYS if way not in own]
    archive = folder / f"archive-{messages}-{skew}"
    if missing and not (archive / MANIFEST).exists():
        generate(archive, messages, skew)
    for way in missing:
        own[way] = run(archive, messages, skew, way)
        known.append(own[way])
        kept.write_text(json.dumps([asdict(each) for each in known], indent=1) + "\n")
    return [own[way] for way in WAYS]


def generate(archive: Path, messages: int, skew: float) -> None:
    shutil.rmtree(archive, ignore_errors=True)
    command = ["gateway", "archive", "generate", str(archive), "--messages", str(messages)]
    command += ["--faults", FAULTS, "--fault-minutes", str(MINUTES), "--skew", str(skew)]
    command += ["--date", DAY, "--routes", str(ROUTES)]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)  # noqa: S603  # our own
    print(f"generated {messages:,} messages in {time.perf_counter() - began:.0f} s", flush=True)


def run(archive: Path, messages: int, skew: float, way: str) -> Figure:
    """One way, in a process of its own.

    Raises:
        AssertionError: it found something else than the faults.
    """
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "benchmarks.join", str(archive)]
        if way != "DuckDB":
            command = [sys.executable, "-m", "gateway", "reconcile", str(archive), "--date", DAY]
            command += ["--master", f"local[{CORES}]", "--output", output]
            command += ["--full"] if way == "full" else []
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,  # noqa: S603  # our own
            Most(lambda: together(process.pid)) as most,
        ):
            said, errors = process.communicate()
        night = Path(output, f"date={DAY}")
        if way == "DuckDB":
            assert process.returncode == 0, errors.decode()
            seconds, start = counted(archive, json.loads(said)), 0.0
        else:
            assert process.returncode == 1, errors.decode()  # the faults break the night
            seconds, start = found(archive, night)
    figure = Figure(messages, skew, way, seconds, start, most.megabytes)
    print(f"{messages:,} {way}: {seconds:.1f} s", flush=True)
    return figure


def found(archive: Path, night: Path) -> tuple[float, float]:
    """Seconds of the job, and of Spark's start, once the faults are what the job found."""
    listed = pq.read_table(night / "exceptions", partitioning=None).to_pylist()
    told = sorted((row["class"], row["id"], row["target"]) for row in listed)
    assert told == sorted((each["class"], each["id"], each["target"]) for each in faults(archive))
    seconds = json.loads((night / "summary.json").read_text())["seconds"]
    return seconds["files"] + seconds["job"], seconds["spark"]


def counted(archive: Path, said: dict[str, Any]) -> float:
    """Seconds of the query, once it counts the faults; it does not look at the order."""
    wanted: dict[str, int] = {}
    for each in faults(archive):
        if each["class"] != "out of order":
            wanted[each["class"]] = wanted.get(each["class"], 0) + 1
    assert {name: count for name, count in said["classes"].items() if name != "delivered"} == wanted
    return float(said["seconds"])


def faults(archive: Path) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = json.loads((archive / MANIFEST).read_text())["faults"]
    return listed


def show(figures: Sequence[Figure]) -> None:
    """A line for each archive, as a table of Markdown."""
    heads = ["messages", "one route", *(f"{way}, s" for way in WAYS), "Spark's start, s"]
    heads += ["full / digest-first", "full / DuckDB", "digest-first / DuckDB"]
    heads += [f"{way}, MB" for way in WAYS]
    print("|", " | ".join(heads), "|")
    print("|" + " --- |" * len(heads))
    for place in range(0, len(figures), len(WAYS)):
        digest, full, duck = own = figures[place : place + len(WAYS)]
        cells = [f"{digest.messages:,}", f"{digest.skew:.0%}", *(f"{x.seconds:.1f}" for x in own)]
        cells += [f"{digest.start:.1f}, {full.start:.1f}", f"{full.seconds / digest.seconds:.1f}"]
        cells += [f"{each.seconds / duck.seconds:.2f}" for each in (full, digest)]
        cells += [f"{each.megabytes:,.0f}" for each in own]
        print("|", " | ".join(cells), "|")


def chart(figures: Sequence[Figure]) -> str:
    skewed = [each for each in figures if each.skew == SKEWED]
    lines = [
        Line(way, [(x.messages / MILLION, x.seconds) for x in skewed if x.way == way])
        for way in WAYS
    ]
    return picture("Seconds to reconcile a day", "million messages", "seconds", lines)


if __name__ == "__main__":
    main()
