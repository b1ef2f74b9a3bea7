"""A night in a bucket: read, joined, and its results written where it lies."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import reconciled_folder
from gateway.archive.location import parse_location
from gateway.archive.routes import write_routes
from gateway.archive.storage import open_storage
from gateway.config.load import load
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.report.result_folder import results_of
from gateway.routing.name_rules import to_rules
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY, NOON
from tests.night.reconcile.night import EDGE_HOURS, HOUR, LATE, MIDNIGHT, Night, model, night

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


ROUTES = """\
endpoints:
  plant: {{kind: memory, dialect: mqtt}}
  erp: {{kind: memory, dialect: ems}}
  audit: {{kind: memory, dialect: ems}}
  hub: {{kind: memory, dialect: ems}}
routes:
  orders:
    from: {{endpoint: plant, pattern: orders/#}}
    to: [{{endpoint: erp}}, {{endpoint: audit}}]
  ticks:
    from: {{endpoint: plant, pattern: "ticks/{{n}}"}}
    to: {{endpoint: hub, template: "{0}.{{n}}"}}
"""


def archive_routes(root: Path) -> None:
    """Two gateways with other names for ticks, of which those of the night are of the first."""
    for gateway, first in (("east", "ticks"), ("west", "TICKS")):
        file = root.with_name(f"{gateway}.yaml")
        file.write_text(ROUTES.format(first))
        write_routes(root, gateway, to_rules(load(file).routes), MIDNIGHT - 2 * HOUR)


def ticks_of_west(made: Night) -> set[tuple[object, ...]]:
    return {
        (row["source_name"], row["name"], f"TICKS.{str(row['name']).rpartition('.')[2]}")
        for row in made.archived
        if (row["gateway"], row["route"], row["leg"]) == ("west", "ticks", "delivered")
        and MIDNIGHT <= row["time"] < MIDNIGHT + 24 * HOUR  # type: ignore[operator]  # a number
    }


def silent(_text: str, _share: float | None = None) -> None:
    return None


@pytest.mark.nightly
def test_a_night_in_a_bucket_has_the_classes_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "archive"
    made = night(3, messages=120, hours=EDGE_HOURS)
    made.write(root)
    archive_routes(root)
    bucket = Bucket()
    try:
        bucket.start()
        storage = open_storage(parse_location(bucket.url))
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            storage.put(path.relative_to(root), path.read_bytes())
        remote = open_archive(bucket.url)

        report = reconcile(remote, DAY, Job(full=False, late=LATE, now=NOON), silent)

        folder = reconciled_folder(Path(), DAY)
        rows = []
        for path, _ in storage.files(folder / "exceptions"):
            with storage.open(path) as file:
                rows += pq.read_table(file).to_pylist()
        summary = storage.read(folder / "summary.json")
    finally:
        bucket.stop()

    keys = ("gateway", "route", "target", "id")
    assert {tuple(row[key] for key in keys): row["class"] for row in rows} == model(made)
    assert {(row["source_name"], row["name"], row["now"]) for row in report.renamed} == (
        ticks_of_west(made)
    )
    assert not report.names_unchecked
    assert summary is not None
    assert json.loads(summary)["verdict"] == report.verdict
    assert results_of(remote, DAY, None).page == f"s3://night/gateway/archive/{folder}/report.html"
