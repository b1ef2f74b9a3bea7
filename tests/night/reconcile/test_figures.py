"""The figures of every table of a date are those of DuckDB over the Parquet of its archive."""

from __future__ import annotations

import importlib
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.job import Job, reconcile
from gateway.trial.synthetic.faults import Fault
from gateway.trial.synthetic.generate_archive import generate
from gateway.trial.synthetic.traffic import Traffic
from tests.archive.samples import DAY, NOON, digest, identity
from tests.night.reconcile.hop_chain import CLOSED, HOUR, SECOND, Chain

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

QUERIES: Final = Path(__file__).with_name("figures.sql")
TRAFFIC: Final = Traffic(20_000, DAY, routes=5, names=60, gateways=2)
FAULTS: Final[Mapping[Fault, int]] = {e: 3 for e in Fault if e is not Fault.UNOBSERVED}
TABLES: Final = {"minutes", "routes", "gateways", "hours", "exceptions", "dead_letters", "names",
                 "cuts", "cut_exceptions"}  # fmt: skip
BETWEEN: Final = {"hops", "hop_exceptions", "renamed"}
UNPLAYED: Final = "in_flight"  # it depends on open journals, and on no row
FAULTS_BETWEEN: Final = (
    "lost",
    "doubled",
    "marked",
    "known",
    "late",
    "forged",
    "altered",
    "in gap",
)
MANY: Final = 60  # groups, of which Arrow keeps the order


def rows_of(table: pa.Table, names: list[str]) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(_plain(table[name]) for name in names), strict=True))


def _plain(column: pa.ChunkedArray) -> list[object]:
    """The values of a column; a time is a number of microseconds."""
    is_time = pa.types.is_timestamp(column.type)
    found: list[object] = (column.cast(pa.int64()) if is_time else column).to_pylist()
    return found


def written_in(output: Path) -> set[str]:
    """The names of the tables of the date."""
    return {each.parent.name for each in output.glob(f"date={DAY}/*/*.parquet")}


@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_the_figures_of_every_table_are_those_of_duckdb(tmp_path: Path, *, full: bool) -> None:
    root, output = tmp_path / "archive", tmp_path / "output"
    generate(root, TRAFFIC, FAULTS, segment=4_000)
    engine = importlib.import_module("duckdb").connect()
    engine.execute("SET TimeZone = 'UTC'")
    files = f"read_parquet('{root}/date=*/hour=*/*.parquet', hive_partitioning = false)"
    engine.execute(f"CREATE VIEW archived AS FROM {files}")
    engine.execute(QUERIES.read_text(encoding="utf-8"))

    reconcile(open_archive(root), DAY, Job(output, full=full), lambda _text, _share=None: None)

    assert written_in(output) - {"renamed"} == TABLES, "a night without hops writes other tables"
    for name in TABLES:
        expected = engine.table(name).to_arrow_table()
        found = pq.read_table(output / f"date={DAY}" / name, partitioning=None)
        assert set(found.column_names) == set(expected.column_names), name
        assert rows_of(found, found.column_names) == rows_of(expected, found.column_names), name
        assert found.num_rows > (MANY if name in {"minutes", "hours"} else 0)


def test_the_figures_between_gateways_are_those_of_duckdb(tmp_path: Path) -> None:
    """Losses, doubles, late, altered and forged messages, a gap, and names of another mapping."""
    rng, chain = random.Random(7), Chain()  # noqa: S311  # a test's traffic
    for number in range(1, 400):
        at = NOON + number * SECOND
        chain.relay("plant", number, at)
        fault = rng.choice((*FAULTS_BETWEEN, *[""] * 12))
        at += 400 * SECOND if fault == "late" else 10_000
        other = {"hash": digest("other")} if fault in {"forged", "altered"} else {}
        if fault not in {"lost", "in gap"}:
            outcome = "signed" if fault == "altered" else "received"
            chain.receive("core", number, at, outcome=outcome, **other)
            chain.deliver("core", number, at + 1_000, **other)
            chain.relay("office", number, at + 10_000, **other)
        if fault == "in gap":
            begin = NOON + number * SECOND - 10
            chain.receive("core", number, begin + 10_000, leg="gap", rule="disconnected",
                          outcome="gap", begin=begin, received=None, id=bytes(16))  # fmt: skip
        again = {"id": identity(number + 10_000)}
        if fault in {"doubled", "marked"}:
            chain.receive("core", number, at + SECOND, redelivered=fault == "marked", **again)
        if fault == "known":
            chain.receive("core", number, at + SECOND, leg="cut", rule="duplicate", **again)
    for number in (500, 501):
        chain.deliver("plant", number, NOON, name=f"bus/other{number}", source_name="a/n500")
    root, output = tmp_path / "archive", tmp_path / "output"
    chain.write(root)
    engine = importlib.import_module("duckdb").connect()
    files = f"read_parquet('{root}/date=*/hour=*/*.parquet', hive_partitioning = false)"
    engine.execute(f"CREATE VIEW archived AS FROM {files}")
    engine.execute(QUERIES.with_name("hop_figures.sql").read_text(encoding="utf-8"))

    job = Job(output, hops=True, now=CLOSED + 30 * 24 * HOUR)
    reconcile(open_archive(root), DAY, job, lambda _text, _share=None: None)

    assert written_in(output) - TABLES == BETWEEN, "a night with hops writes other tables"
    for name in BETWEEN:
        expected = engine.table(name).to_arrow_table()
        found = pq.read_table(output / f"date={DAY}" / name, partitioning=None)
        names = [each for each in found.column_names if each != UNPLAYED]
        assert set(names) == set(expected.column_names), name
        assert rows_of(found, names) == rows_of(expected, names), name
    played = pq.read_table(output / f"date={DAY}" / "hops", partitioning=None).to_pylist()
    assert all(played[0][name] for name in played[0] if name != UNPLAYED), "each class is there"
