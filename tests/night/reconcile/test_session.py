"""A Spark session whose Java process ends by itself, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.waiting import PATIENCE

pytestmark = pytest.mark.spark

CONNECT = """
import sys
from typing import Any
from gateway.errors import ReconcileError
from gateway.night.reconcile.session import spark_session

try:
    with spark_session(sys.argv[1]):
        pass
except ReconcileError as fault:
    print(fault)
"""
PROGRAM = """
from pyspark import SparkContext
from pyspark.sql import SparkSession
from gateway.errors import ReconcileError
from gateway.night.reconcile.session import spark_session

try:
    with spark_session("local[1]", short=True) as spark:
        java = spark.sparkContext._gateway
        java.proc.kill()
        java.proc.wait()
        try:
            spark.range(1).count()
        finally:
            spark.catalog.clearCache()
except ReconcileError as fault:
    print(fault)
print(SparkContext._active_spark_context, SparkSession.getActiveSession())
"""


@pytest.mark.parametrize(
    ("master", "remote"), [("sc://127.0.0.1:15002", ""), ("local[1]", "sc://127.0.0.1:15002")]
)
def test_spark_connect_is_refused_before_anything_starts(master: str, remote: str) -> None:
    refused = subprocess.run(  # noqa: S603  # a program of this test
        [sys.executable, "-c", CONNECT, master],
        env={**os.environ, "SPARK_REMOTE": remote} if remote else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert refused.stdout.startswith("spark: Spark Connect (sc://127.0.0.1:15002) is not supported")
    assert "give a --master" in refused.stdout
    assert refused.stderr == ""


@pytest.mark.nightly  # starts a Java process
def test_the_end_of_java_is_the_error_and_no_refused_connection() -> None:
    ended = subprocess.run(  # noqa: S603  # a program of this test
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=PATIENCE * 4,
        check=False,
    )

    lines = ended.stdout.splitlines()
    assert lines[0] == "spark: Java ended with status -9 (-9: killed, perhaps for its memory)", (
        ended.stderr
    )
    assert lines[-1] == "None None"
    assert ended.returncode == 0


def test_an_interrupt_reaches_this_process_only(spark: SparkSession) -> None:
    """Spark would cancel all jobs at an interrupt; Java has a process group of its own."""
    launched: Any = spark.sparkContext._gateway  # noqa: SLF001  # no public way to its process
    java = launched.proc

    ours = {signal.default_int_handler, signal.SIG_IGN}  # ignored in a background of a shell
    assert signal.getsignal(signal.SIGINT) in ours
    assert os.getpgid(java.pid) != os.getpgid(0)
