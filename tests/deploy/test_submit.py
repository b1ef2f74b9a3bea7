"""The submit script, with the spark-submit of PySpark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.errors import GatewayError
from gateway.night.cli.submitted import check
from tests.night.reconcile.shortening import Sender, long_name
from tests.waiting import PATIENCE

SCRIPT = Path(__file__).parents[2] / "deploy" / "spark-submit.sh"


def submit(*arguments: str, **own: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **own}
    return subprocess.run(  # noqa: S603
        [str(SCRIPT), *arguments],
        env=environment, capture_output=True, text=True, timeout=4 * PATIENCE, check=False,
    )  # fmt: skip


@pytest.mark.spark
@pytest.mark.nightly  # starts a Java process
def test_arguments_and_the_exit_status_pass_through(tmp_path: Path) -> None:
    root, scratch = tmp_path / "an [odd] $name", tmp_path / "scratch"
    scratch.mkdir()
    sender = Sender(root)
    sender.send(long_name(1), "erp", "ems")
    sender.close()
    (root / "_names" / "west.jsonl").write_text("no name\n")
    own = {"MASTER": "local[2]", "TMPDIR": str(scratch)}

    options = ["--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
    settings = {
        "spark.sql.shuffle.partitions": "1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": scratch.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.sql.parquet.compression.codec": "gzip",  # the gateway's own is zstd
    }
    options += [word for each in settings.items() for word in ("--conf", "=".join(each))]
    done = submit(*options, "--", "archive", "names", str(root), **own)

    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()  # spark-submit merges both streams of the program
    assert lines[-1] == "1 shortened name, 1 of them sent to 1 target"
    assert any("_names/west.jsonl:1: is no object" in each for each in lines)
    assert not list(scratch.glob("tmp.*"))
    (log,) = scratch.iterdir()
    events = map(json.loads, log.read_text().splitlines())
    used = next(each["Spark Properties"] for each in events if "Spark Properties" in each)
    assert used.items() >= {**settings, "spark.app.name": "gateway"}.items()


def test_without_a_command_it_prints_its_usage() -> None:
    done = submit()

    assert (done.returncode, done.stderr.partition(":")[0]) == (2, "usage")


def test_without_spark_it_names_the_package_to_install(tmp_path: Path) -> None:
    done = submit("reconcile", str(tmp_path), SPARK_HOME=str(tmp_path))

    assert done.returncode == 2
    assert "set SPARK_HOME, or install pyspark for " in done.stderr


REFUSED = [
    pytest.param(["demo"], "'demo' is no Spark job", id="another-command"),
    pytest.param(["archive", "generate", "x"], "'archive generate' is no Spark", id="generate"),
    pytest.param([], "'' is no Spark job", id="nothing"),
    pytest.param(["reconcile", "x", "--master", "y"], "spark-submit sets", id="master"),
    pytest.param(["reconcile", "x", "--master=y"], "spark-submit sets", id="master-joined"),
]


@pytest.mark.parametrize(("arguments", "reason"), REFUSED)
def test_a_command_that_is_no_spark_job_is_refused(arguments: list[str], reason: str) -> None:
    with pytest.raises(GatewayError, match=reason):
        check(arguments)
