"""A reconciliation on a standalone cluster: a master and two workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.tree import tree
from gateway.archive.lookup.name_store import NameFile
from gateway.translate.shorten import digest_of
from tests.archive.samples import DAY
from tests.reconcile.cluster import cluster
from tests.reconcile.night import FEW_HOURS, LATE, model, night

# three processes of Spark and both ways of reconciling take minutes on two cores
pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(2_400)]

ROOT = Path(__file__).parents[2]


def gateway(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in another process, because this one may have a Spark session."""
    own = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    return run([sys.executable, "-m", "gateway", *arguments], own)


def submitted(master: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command by the submit script; executors get the code from its zip file only."""
    own = {"MASTER": master, "PYTHON": sys.executable}
    return run([str(ROOT / "deploy" / "spark-submit.sh"), *arguments], own)


def run(command: list[str], own: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own commands
        command,
        env={**os.environ, **own, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def test_a_night_with_faults_is_reconciled_exactly(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    made = night(11)
    made.write(root)
    names = NameFile(root, "east")
    names.write({digest_of(("a", "b")): ("a", "b")})
    names.close()
    expected = model(made)
    day = DAY.isoformat()

    with cluster(tmp_path) as master:
        common = ["--date", day, "--master", master]
        night_long = ["--late", str(LATE), "--spooled-days", "3650", "--output"]
        first = gateway(
            "reconcile", str(root), *common, *night_long, str(tmp_path / "first"), "--sets"
        )
        whole = gateway(
            "reconcile", str(root), *common, *night_long, str(tmp_path / "full"), "--full"
        )
        given = ["--date", day, *night_long, str(tmp_path / "submitted")]
        options = ["--conf", "spark.executor.memory=512m", "--"]
        sent = submitted(master, *options, "reconcile", str(root), *given)
        compacted = submitted(master, "archive", "compact", str(root), "--date", day)
        again = gateway("reconcile", str(root), *common, *night_long, str(tmp_path / "again"))

    assert (first.returncode, whole.returncode, again.returncode) == (1, 1, 1), first.stderr
    assert sent.returncode == 1, sent.stderr
    assert f"starting Spark on {master}" in sent.stdout  # it makes one of two streams
    assert compacted.returncode == 0, compacted.stderr
    assert "1 shortened names, 0 of them sent to 0 targets" in compacted.stdout
    for name in ("first", "full", "submitted", "again"):
        folder = tmp_path / name / f"date={day}"
        rows = pq.read_table(folder / "exceptions", partitioning=None).to_pylist()
        keys = ("gateway", "route", "target", "id")
        assert {tuple(row[key] for key in keys): row["class"] for row in rows} == expected
        summary = json.loads((folder / "summary.json").read_text())
        missing = [each for each in expected.values() if each == "missing"]
        assert summary["totals"]["missing"] == len(missing)


@pytest.mark.parametrize("step", ["checking the files", "evaluating the id sets", "joining"])
def test_a_worker_killed_in_the_middle_of_a_night_costs_no_verdict(
    tmp_path: Path, step: str
) -> None:
    root, output = tmp_path / "archive", tmp_path / "results"
    made = night(11)
    made.write(root)
    workers: list[subprocess.Popen[bytes]] = []

    with cluster(tmp_path, children=workers) as master:
        command = [sys.executable, "-m", "gateway", "reconcile", str(root), "--sets"]
        command += ["--date", DAY.isoformat(), "--master", master, "--late", str(LATE)]
        command += ["--spooled-days", "3650", "--output", str(output)]
        own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with subprocess.Popen(  # noqa: S603  # our own command
            command, env={**os.environ, **own}, stderr=subprocess.PIPE, text=True, cwd=ROOT
        ) as child:
            assert child.stderr is not None
            lines = iter(child.stderr)
            assert any(step in line for line in lines)
            for pid in tree(workers[0].pid):  # with its executor, and the Python of that
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            rest = "".join(lines)

    assert child.returncode in {1, 2}, rest
    if child.returncode == 2:
        assert "gateway reconcile: spark: the job failed: " in rest
        assert not (output / f"date={DAY}" / "summary.json").exists()
        return
    rows = pq.read_table(output / f"date={DAY}" / "exceptions", partitioning=None).to_pylist()
    keys = ("gateway", "route", "target", "id")
    assert {tuple(row[key] for key in keys): row["class"] for row in rows} == model(made)


def test_executors_whose_python_lacks_the_packages_are_named(tmp_path: Path) -> None:
    python = Path(sys.base_prefix, "bin", "python3")  # below the packages of this environment
    if subprocess.run([python, "-c", "import pyarrow"], check=False).returncode == 0:  # noqa: S603
        pytest.skip("the Python of the system has PyArrow")
    night(11, hours=FEW_HOURS).write(tmp_path)

    done = run(
        [sys.executable, "-m", "gateway", "reconcile", str(tmp_path), "--date", DAY.isoformat()],
        {"PYSPARK_PYTHON": str(python)},
    )

    assert done.returncode == 2
    assert "the Python of the executors has no 'pyarrow'; install" in done.stderr
    assert not (tmp_path / "_reconciled" / f"date={DAY}" / "summary.json").exists()
