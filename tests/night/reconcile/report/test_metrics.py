"""The metrics of a night: values, the kept time of the last clean date, and an atomic file."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.cli import make_parser
from gateway.night.cli import reconcile
from gateway.night.reconcile.report.metrics import FAMILIES, write_metrics
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.run import Run
from tests.night.reconcile.summaries import DAY, clean, empty, eventful, gappy, hidden

NOW = datetime(2026, 3, 15, 1, 40, tzinfo=UTC)
MIDNIGHT = (DAY + timedelta(days=1)).timestamp()


def written(path: Path, report: Report) -> dict[str, float]:
    """Write the metrics and return their samples; a label's value follows the name."""
    write_metrics(Run(report), path, int(NOW.timestamp() * 1_000_000), 19.5)
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }


def test_a_night_has_its_verdict_counts_and_times(tmp_path: Path) -> None:
    found = written(tmp_path / "reconcile.prom", eventful())

    assert found["gateway_reconcile_status"] == 1
    assert found["gateway_reconcile_copies missing"] == 4
    assert found["gateway_reconcile_copies recovered"] == 5
    assert found["gateway_reconcile_source_gaps"] == 3
    assert found["gateway_reconcile_findings error"] == 2
    assert found["gateway_reconcile_findings warning"] == 1
    assert found["gateway_reconcile_duration_seconds"] == 19.5
    assert found["gateway_reconcile_date_timestamp_seconds"] == MIDNIGHT
    assert found["gateway_reconcile_finished_timestamp_seconds"] == NOW.timestamp()
    assert "gateway_reconcile_last_clean_timestamp_seconds" not in found


def test_every_family_is_written(tmp_path: Path) -> None:
    hops = [{"expected": 3, "in flight": 1, "delivered": 2}]
    report = replace(clean(), hops=hops, cuts=hidden().cuts, accept_cuts=True)
    found = written(tmp_path / "reconcile.prom", report)

    assert found["gateway_reconcile_cut_messages cut on another's word"] == 2
    assert found["gateway_reconcile_copies redelivered"] == 0
    assert found["gateway_reconcile_hop_messages in flight"] == 1
    assert {name.split()[0] for name in found} == set(FAMILIES)


@pytest.mark.parametrize(
    ("report", "clean_until"),
    [
        pytest.param(eventful(), MIDNIGHT, id="not-clean"),
        pytest.param(gappy(), MIDNIGHT, id="gaps"),
        pytest.param(replace(gappy(), day=date(2026, 3, 20)), MIDNIGHT, id="later-with-gaps"),
        pytest.param(empty(), MIDNIGHT, id="no-answer"),
        pytest.param(Report("a", None, answered=False), MIDNIGHT, id="no-date"),
        pytest.param(replace(clean(), day=date(2026, 3, 10)), MIDNIGHT, id="older-date"),
        pytest.param(replace(clean(), day=date(2026, 3, 15)), MIDNIGHT + 86_400, id="next-date"),
        pytest.param(
            replace(gappy(), day=date(2026, 3, 15), accept_gaps=True),
            MIDNIGHT + 86_400,
            id="accepted",
        ),
    ],
)
def test_the_last_clean_date_is_kept_until_a_newer_one(
    tmp_path: Path, report: Report, clean_until: float
) -> None:
    path = tmp_path / "reconcile.prom"
    written(path, clean())

    assert written(path, report)["gateway_reconcile_last_clean_timestamp_seconds"] == clean_until


def test_no_answer_has_no_counts(tmp_path: Path) -> None:
    found = written(tmp_path / "reconcile.prom", empty())

    assert found["gateway_reconcile_status"] == 2
    assert [name for name in found if "copies" in name or "gaps" in name] == []


def test_an_unreadable_earlier_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "reconcile.prom"
    path.write_bytes(b"\xff\x00")

    assert written(path, clean())["gateway_reconcile_status"] == 0


def test_the_file_is_replaced_in_one_step_and_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "reconcile.prom"
    path.touch(mode=0o600)
    before = path.stat().st_ino

    written(path, clean())

    assert path.stat().st_ino != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["reconcile.prom"]


def test_a_folder_that_is_absent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_metrics(Run(clean()), tmp_path / "absent" / "reconcile.prom", 0, 1.0)


def command(archive: Path, metrics: Path) -> int:
    arguments = ["reconcile", str(archive), "--date", "2026-03-14", "--metrics", str(metrics)]
    return reconcile.run(make_parser("reconcile").parse_args(arguments))


def test_a_command_without_an_answer_writes_its_status(tmp_path: Path) -> None:
    path = tmp_path / "reconcile.prom"

    assert command(tmp_path / "absent", path) == 2
    assert "\ngateway_reconcile_status 2\n" in path.read_text()


def test_metrics_that_cannot_be_written_are_an_error_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path / "absent", tmp_path / "absent" / "reconcile.prom") == 2
    assert "reconcile.prom" in capsys.readouterr().err
