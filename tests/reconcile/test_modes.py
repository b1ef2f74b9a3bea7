"""Digests first, `--full` and the model give the same classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import digest_path, segments
from gateway.reconcile.job import Job, reconcile
from gateway.reconcile.report.summary import count
from gateway.reconcile.report.text import Report, Row
from tests.archive.samples import DAY
from tests.reconcile.night import FEW_HOURS, HOURS, LATE, Copy, model, night

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

NIGHTLY = [(1, FEW_HOURS), (2, HOURS), *((seed, HOURS) for seed in range(10, 30))]


def silent(_: str) -> None:
    return None


def run(root: Path, *, full: bool) -> tuple[Report, dict[Copy, str], list[Row]]:
    output = root.with_name(f"full-{full}")
    report = reconcile(Job(root, DAY, output, full=full, late=LATE), silent)
    listed = pq.read_table(output / "exceptions", partitioning=None).to_pylist()
    found = {
        (row["gateway"], row["route"], row["target"], row["id"]): row["class"] for row in listed
    }
    return report, found, sorted(listed, key=lambda row: (row["class"], row["id"], row["target"]))


def timed(report: Report) -> int:
    """The number of copies with a latency in the report."""
    return sum(count(row, "timed") for row in report.whole_day)


@pytest.mark.nightly
@pytest.mark.parametrize(("seed", "hours"), NIGHTLY)
def test_both_modes_find_the_classes_of_the_model(
    tmp_path: Path, seed: int, hours: Sequence[int]
) -> None:
    root = tmp_path / "archive"
    made = night(seed, hours=hours)
    made.write(root)

    by_digest, found, listed = run(root, full=False)
    by_row, joined, all_listed = run(root, full=True)

    assert found == joined == model(made)
    assert listed == all_listed
    assert_equal_reports(by_digest, by_row)
    assert by_digest.verdict == by_row.verdict


def test_damaged_digests_are_findings_and_cost_no_class(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    made = night(1, hours=FEW_HOURS)
    made.write(root)
    absent, broken, wrong, *_ = segments(root, DAY)
    digest_path(root, absent).unlink()
    digest_path(root, broken).write_bytes(b"PAR1")

    by_digest, found, listed = run(root, full=False)
    counts_one_row_more(digest_path(root, wrong))
    by_row, joined, all_listed = run(root, full=True)

    assert found == joined == model(made)
    assert listed == all_listed
    assert_equal_reports(by_digest, by_row)
    assert {"missing-digest", "unreadable-digest"} <= {each.rule for each in by_digest.findings}
    (finding,) = (each for each in by_row.findings if each.rule == "wrong-digest")
    assert finding.place == str(digest_path(root, wrong).relative_to(root))
    assert "differs from its segment in count" in finding.text


def assert_equal_reports(by_digest: Report, by_row: Report) -> None:
    assert by_digest.routes == by_row.routes
    assert by_digest.gateways == by_row.gateways
    assert by_digest.hours == by_row.hours
    assert by_digest.whole_day == by_row.whole_day
    assert any(row["timed"] for row in by_digest.whole_day)
    assert by_digest.proof["proven"] not in (0, by_digest.proof["minutes"])


def counts_one_row_more(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    column = table.schema.get_field_index("count")
    more = [number + 1 for number in table["count"].to_pylist()]
    metadata = pq.read_metadata(path).metadata
    pq.write_table(
        table.set_column(column, "count", [more]).replace_schema_metadata(metadata), path
    )


@pytest.mark.nightly
def test_digests_of_an_older_gateway_lack_nothing_but_latencies(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    night(4, faults=0, hours=range(8)).write(root)
    for path in segments(root, DAY):
        digest = digest_path(root, path)
        table = pq.read_table(digest, partitioning=None)
        pq.write_table(table.drop_columns("latency"), digest)

    by_digest, *_ = run(root, full=False)
    by_row, *_ = run(root, full=True)

    assert by_digest.proof["proven"] not in (0, by_digest.proof["minutes"])
    assert by_digest.routes == by_row.routes
    assert by_digest.findings == by_row.findings == []
    assert timed(by_row) == count(by_row.totals or {}, "delivered")
    assert timed(by_digest) == timed(by_row) - count(by_digest.proof, "copies")
