"""The queries of docs/queries.md give equal rows in DuckDB and in Spark."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from gateway.cli import main
from gateway.trial.synthetic.faults import Fault
from gateway.trial.synthetic.generate_archive import generate
from gateway.trial.synthetic.traffic import Traffic
from tests.archive.samples import DAY, NOON, archive, delivered, digest, identity, received
from tests.printed_commands import fences

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

PAGE = Path(__file__).parents[3] / "docs" / "queries.md"
BLOCK = re.compile(r"```sql ?(?P<engine>\w*)\n(?P<text>.*?)```", re.DOTALL)
EXAMPLE = "00064cf9a1b2c3d40000000000000007"
PATH = [
    (gateway, "orders", leg) for gateway in ("edge", "core") for leg in ("received", "delivered")
]
QUERIES = re.findall(
    r"\n([^\n]+):\n\n```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)


def setup(engine: str, root: Path) -> list[str]:
    """The statements of the page that define the views."""
    text = PAGE.read_text(encoding="utf-8").replace("ARCHIVE", str(root))
    (block,) = (each["text"] for each in BLOCK.finditer(text) if each["engine"] == engine)
    return [each.strip() for each in block.split(";") if each.strip()]


def plain(value: object) -> object:
    """A value as both engines give it: an interval of DuckDB has months, days, nanoseconds."""
    if isinstance(value, pa.MonthDayNano):
        return timedelta(days=value.days, microseconds=value.nanoseconds // 1_000)
    return value


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(plain, row.values())) for row in table.to_pylist())


def documented() -> set[str]:
    """The columns of the results in the page about them."""
    page = (PAGE.parent / "reconciliation.md").read_text(encoding="utf-8")
    section = page.partition("### Columns of the results")[2].partition("\n### ")[0]
    lines = (line for line in section.splitlines() if line.startswith("| `"))
    return {name for line in lines for name in re.findall("`([a-z0-9_]+)`", line.split("|")[1])}


def write_archive(root: Path) -> None:
    """Write a day with faults, a message that two gateways relayed, and the results of a night."""
    traffic = Traffic(3_000, DAY, routes=3, names=60, gateways=2, observed=True)
    generate(root, traffic, dict.fromkeys(Fault, 1), segment=800)
    archive(
        root,
        received([7], received=NOON),
        delivered([7], received=NOON, time=NOON + 9_000),
        gateway="edge",
    )
    later = NOON + 20_000
    archive(
        root,
        received([8], time=later, received=later, name="a.b7", trace=identity(7)),
        delivered([8], time=NOON + 30_000, received=later, trace=identity(7)),
        gateway="core",
    )
    assert main(["reconcile", str(root), "--date", DAY.isoformat(), "--master", "local[1]"]) == 1
    archive(
        root,
        received([9], received=NOON, name="a/b7", hash=digest("7")),
        received([10], leg="gap", outcome="gap", rule="away"),
        received([13], leg="gap", outcome="gap", rule="disconnected", begin=NOON - 9),
        received(
            [14], leg="gap", outcome="gap", rule="disconnected", begin=NOON - 9, route="audit"
        ),
        received([11], leg="cut", outcome="cut", rule="loop"),
        delivered([12], received=NOON, leg="spooled", outcome="spooled"),
        start=NOON,
    )


@pytest.mark.nightly  # twenty queries over the files of a day, in Spark
def test_every_query_of_the_page_gives_equal_rows_in_both_engines(
    spark: SparkSession, tmp_path: Path
) -> None:
    duckdb = importlib.import_module("duckdb")
    write_archive(tmp_path)
    engine = duckdb.connect()
    for statement in setup("duckdb", tmp_path):
        engine.execute(statement)
    for statement in setup("spark", tmp_path):
        spark.sql(statement)

    path = re.findall(r'spark.read.parquet\("(ARCHIVE/[^"]+/minutes)"\)', PAGE.read_text())[0]
    assert spark.read.parquet(path.replace("ARCHIVE", str(tmp_path))).count() > 0
    files = (tmp_path / "_reconciled").rglob("*.parquet")
    assert {name for file in files for name in pq.read_schema(file).names} <= documented()
    assert len(QUERIES) == 20
    for title, text in QUERIES:
        query = text.replace(EXAMPLE, identity(7).hex())
        found = rows_of(spark.sql(query).toArrow())
        assert found == rows_of(engine.sql(query).to_arrow_table()), title
        assert found, title
        if title.startswith("Source gaps"):
            assert [row[4] for row in found] == ["disconnected"]
        if query != text:
            assert [row[1:4] for row in sorted(found, key=lambda row: str(row[0]))] == PATH


@pytest.mark.parametrize("page", ["archive.md", "queries.md"])
@pytest.mark.usefixtures("spark")
def test_the_first_python_of_a_page_runs_as_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], page: str
) -> None:
    archive(tmp_path, received([1, 2]), delivered([1]))
    text = (PAGE.parent / page).read_text(encoding="utf-8")
    block = fences("python", text)[0].replace("ARCHIVE", str(tmp_path))

    exec(block.replace("2026-03-14", DAY.isoformat()), {})  # noqa: S102  # the page's own text

    assert "received" in capsys.readouterr().out or page == "archive.md"
