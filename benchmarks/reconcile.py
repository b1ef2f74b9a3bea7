"""Measures the reconciliation in both modes, and a DuckDB query: seconds, memory, faults found.

    python -m benchmarks.reconcile [--messages N ...] [--folder DIR] [--chart FILE]

Each size is an archive with 50 faults in 20 minutes and 90 % of its traffic on one route. The
smallest size is measured with equal routes too. DIR/figures.json stores the figures, so that an
interrupted run resumes; without --folder nothing is stored.
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
from benchmarks.tree import PeakMemory, tree_megabytes
from gateway.trial.synthetic.fault_manifest import MANIFEST

DAY = "2026-03-14"
FAULTS = "loss=8,duplicate=7,alter=7,reorder=7,late=7,dead=7,unexpected=7"
MINUTES = 20
ROUTES = 4
SKEWED, EVEN = 0.9, 1 / ROUTES
CORES = 2
SIZES = (100_000, 1_000_000)
METHODS = ("sets", "full", "DuckDB")
MILLION = 1_000_000


@dataclass(frozen=True)
class Figure:
    """One run of one method: its seconds, the seconds of Spark's start, its peak memory in MB."""

    messages: int
    skew: float
    method: str
    seconds: float
    start: float
    megabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, nargs="+", default=SIZES)
    parser.add_argument("--folder", type=Path, help="folder for archives and figures (temporary)")
    parser.add_argument("--chart", type=Path, help="write a chart of seconds by messages, as SVG")
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
    """Return the figures of one archive; those not stored yet are measured."""
    kept = folder / "figures.json"
    known = [Figure(**each) for each in json.loads(kept.read_text())] if kept.exists() else []
    own = {each.method: each for each in known if (each.messages, each.skew) == (messages, skew)}
    missing = [method for method in METHODS if method not in own]
    archive = folder / f"archive-{messages}-{skew}"
    if missing and not (archive / MANIFEST).exists():
        generate(archive, messages, skew)
    for method in missing:
        own[method] = run(archive, messages, skew, method)
        known.append(own[method])
        kept.write_text(json.dumps([asdict(each) for each in known], indent=1) + "\n")
    return [own[method] for method in METHODS]


def generate(archive: Path, messages: int, skew: float) -> None:
    shutil.rmtree(archive, ignore_errors=True)
    command = ["gateway", "archive", "generate", str(archive), "--messages", str(messages)]
    command += ["--faults", FAULTS, "--fault-minutes", str(MINUTES), "--skew", str(skew)]
    command += ["--date", DAY, "--routes", str(ROUTES)]
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    print(f"generated {messages:,} messages in {time.perf_counter() - started:.0f} s", flush=True)


def run(archive: Path, messages: int, skew: float, method: str) -> Figure:
    """Run one method in a separate process.

    Raises:
        AssertionError: it did not find exactly the faults.
    """
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-m", "benchmarks.join", str(archive)]
        if method != "DuckDB":
            command = [sys.executable, "-m", "gateway", "reconcile", str(archive), "--date", DAY]
            command += ["--master", f"local[{CORES}]", "--output", results]
            command += [f"--{method}"]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,  # noqa: S603
            PeakMemory(lambda: tree_megabytes(process.pid)) as peak,
        ):
            output, errors = process.communicate()
        date_folder = Path(results, f"date={DAY}")
        if method == "DuckDB":
            assert process.returncode == 0, errors.decode()
            seconds, start = counted(archive, json.loads(output)), 0.0
        else:
            assert process.returncode == 1, errors.decode()  # the faults are violations
            seconds, start = found(archive, date_folder)
    figure = Figure(messages, skew, method, seconds, start, peak.megabytes)
    print(f"{messages:,} {method}: {seconds:.1f} s", flush=True)
    return figure


def found(archive: Path, date_folder: Path) -> tuple[float, float]:
    """Return the seconds of the job and of Spark's start, after a check of the found faults."""
    listed = pq.read_table(date_folder / "exceptions", partitioning=None).to_pylist()
    reported = sorted((row["class"], row["id"], row["target"]) for row in listed)
    assert reported == sorted(
        (each["class"], each["id"], each["target"]) for each in faults(archive)
    )
    seconds = json.loads((date_folder / "summary.json").read_text())["seconds"]
    return seconds["files"] + seconds["job"], seconds["spark"]


def counted(archive: Path, result: dict[str, Any]) -> float:
    """Return the seconds of the query, after a check of its counts; it does not check the order."""
    expected: dict[str, int] = {}
    for each in faults(archive):
        if each["class"] != "out of order":
            expected[each["class"]] = expected.get(each["class"], 0) + 1
    assert {
        name: count for name, count in result["classes"].items() if name != "delivered"
    } == expected
    return float(result["seconds"])


def faults(archive: Path) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = json.loads((archive / MANIFEST).read_text())["faults"]
    return listed


def show(figures: Sequence[Figure]) -> None:
    """Print a Markdown table with a row per archive."""
    heads = ["messages", "one route", *(f"{method}, s" for method in METHODS), "Spark's start, s"]
    heads += ["full / sets", "full / DuckDB", "sets / DuckDB"]
    heads += [f"{method}, MB" for method in METHODS]
    print("|", " | ".join(heads), "|")
    print("|" + " --- |" * len(heads))
    for first in range(0, len(figures), len(METHODS)):
        sets, full, duck = own = figures[first : first + len(METHODS)]
        cells = [f"{sets.messages:,}", f"{sets.skew:.0%}", *(f"{x.seconds:.1f}" for x in own)]
        cells += [f"{sets.start:.1f}, {full.start:.1f}", f"{full.seconds / sets.seconds:.1f}"]
        cells += [f"{each.seconds / duck.seconds:.2f}" for each in (full, sets)]
        cells += [f"{each.megabytes:,.0f}" for each in own]
        print("|", " | ".join(cells), "|")


def chart(figures: Sequence[Figure]) -> str:
    skewed = [each for each in figures if each.skew == SKEWED]
    lines = [
        Line(method, [(x.messages / MILLION, x.seconds) for x in skewed if x.method == method])
        for method in METHODS
    ]
    return picture("Seconds to reconcile a day", "million messages", "seconds", lines)


if __name__ == "__main__":
    main()
