"""Digests first and `--full` give the same answer, and it is the model's."""

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

NIGHTLY = [pytest.param(seed, HOURS, marks=pytest.mark.nightly) for seed in (2, *range(10, 30))]


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
    """Copies whose latency the report has."""
    return sum(count(row, "timed") for row in report.whole_day)


@pytest.mark.parametrize(("seed", "hours"), [(1, FEW_HOURS), *NIGHTLY])
def test_both_ways_find_what_the_model_finds(
    tmp_path: Path, seed: int, hours: Sequence[int]
) -> None:
    root = tmp_path / "archive"
    made = night(seed, hours=hours)
    made.write(root)
    expected = model(made)

    by_digest, found, listed = run(root, full=False)
    by_row, joined, all_listed = run(root, full=True)

    assert found == expected
    assert joined == expected
    assert listed == all_listed
    assert by_digest.routes == by_row.routes
    assert by_digest.gateways == by_row.gateways
    assert by_digest.hours == by_row.hours
    assert by_digest.whole_day == by_row.whole_day
    assert any(row["timed"] for row in by_digest.whole_day)
    assert by_digest.verdict == by_row.verdict
    assert by_digest.proof["proven"] not in (0, by_digest.proof["minutes"])


def test_what_digests_do_not_say_is_joined(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    made = night(3, hours=range(-1, 9))
    made.write(root)
    one, other, *_ = segments(root, DAY)
    digest_path(root, one).unlink()
    digest_path(root, other).write_bytes(b"PAR1")

    report, found, _ = run(root, full=False)

    assert found == model(made)
    assert sorted(finding.rule for finding in report.findings) == [
        "missing-digest", "unreadable-digest",
    ]  # fmt: skip


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


def test_full_finds_a_digest_that_lies(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    made = night(4, faults=0, hours=range(8))
    made.write(root)
    path = digest_path(root, segments(root, DAY)[0])
    table = pq.read_table(path, partitioning=None)
    place = table.schema.get_field_index("count")
    more = [count + 1 for count in table["count"].to_pylist()]
    metadata = pq.read_metadata(path).metadata
    pq.write_table(table.set_column(place, "count", [more]).replace_schema_metadata(metadata), path)

    report, found, _ = run(root, full=True)

    assert found == {}
    (finding,) = report.findings
    assert (finding.rule, finding.place) == ("wrong-digest", str(path.relative_to(root)))
    assert "does not add up to its segment: count" in finding.text
