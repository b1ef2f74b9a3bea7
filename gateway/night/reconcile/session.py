"""The Spark session; errors quote the last lines from its Java process."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import make_archive
from subprocess import TimeoutExpired
from typing import Any, Final, TextIO
from warnings import catch_warnings, simplefilter

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import gateway
from gateway.errors import ReconcileError
from gateway.night.reconcile.memory import heap, memory_bytes
from gateway.night.reconcile.root_cause import SPARK_FAULTS, root_cause
from gateway.untyped import Untyped

LOCAL: Final = "local"
_CONNECT: Final = "sc://"
_MAX_LOG_LINES: Final = 15  # of the log in an error text
_END_TIMEOUT: Final = 0.5  # seconds, for a Java process that breaks its connections

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.app.name": "gateway reconcile",
    "spark.driver.maxResultSize": "0",  # 1 GiB by default; the heap is the limit
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # a job for each broadcast
    "spark.sql.adaptive.enabled": "false",  # a job for each stage; the sizes are known before
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # records a stack trace for each column
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.files.openCostInBytes": str(256 << 10),  # segments are small and many
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "20000",  # listing here is faster
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # the archive writes them
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_LOOPBACK: Final[Mapping[str, str]] = {  # the host name of a laptop may not resolve
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_PAGE_SIZE: Final = "1m"  # of a short job's sorts; by default each clears 64 MB for a few rows
_QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def spark_session(
    master: str, extra: Mapping[str, str] | None = None, *, short: bool = False
) -> Iterator[SparkSession]:
    """Use the active session, or start a new one and stop it at the end of the block.

    `short` selects Java's quick compiler, which halves the time of a small job, and small pages.
    With these, a join of 40,000,000 rows ended for lack of heap.

    Raises:
        ReconcileError: Spark Connect is configured, or Spark does not start; the text ends with
            the last lines of its log.
    """
    _check_classic(master)
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with tempfile.TemporaryDirectory(prefix="gateway-spark-") as folder:
        log = Path(folder, "spark.log")
        with log.open("w", encoding="utf-8") as sink:
            java = {"spark.driver.extraJavaOptions": _QUICK_JAVA} if short else {}
            if short and master.startswith(LOCAL):
                java["spark.buffer.pageSize"] = _PAGE_SIZE
            conf = _conf(master, folder, {**java, **(extra or {})})
            spark, process = _start(conf, sink, log)
        try:
            if not master.startswith(LOCAL):
                package = Path(gateway.__file__).parent  # executors may have only what it needs
                name, kind = f"{folder}/{package.name}", "zip"
                spark.sparkContext.addPyFile(make_archive(name, kind, package.parent, package.name))
            yield spark
        except (*SPARK_FAULTS, OSError, ReconcileError) as error:
            _raise_if_ended(process, log, error)
            raise
        finally:
            _stop(spark)
            _end(process)


@contextmanager
def submitted_session() -> Iterator[SparkSession]:
    """The session of a program that spark-submit started; its settings override ours.

    Raises:
        ReconcileError: Spark Connect is configured.
    """
    java: Any = launch_gateway()  # type: ignore[no-untyped-call]  # pyspark left it untyped
    given = java.jvm.org.apache.spark.SparkConf()  # only the Java process knows these settings
    _check_classic(given.get("spark.remote", ""))
    local = given.get("spark.master", LOCAL).startswith(LOCAL)
    settings = {**_SETTINGS, **(_LOOPBACK if local else {})}
    added = [(name, value) for name, value in settings.items() if not given.contains(name)]
    conf = SparkConf(loadDefaults=False).setAll(added)  # the context adds them to those given
    spark = SparkSession(SparkContext(conf=conf, gateway=java))
    try:
        yield spark
    finally:
        _stop(spark)


def _check_classic(master: str) -> None:
    """Check that neither `master` nor the environment asks for Spark Connect.

    Raises:
        ReconcileError: one of them does.
    """
    remote = master if master.startswith(_CONNECT) else os.environ.get("SPARK_REMOTE")
    if remote:
        raise ReconcileError(
            f"spark: Spark Connect ({remote}) is not supported, because its client has no"
            " SparkContext; give a --master as local[*], yarn or spark://HOST:7077, and unset"
            " SPARK_REMOTE"
        )


def _conf(master: str, folder: str, extra: Mapping[str, str]) -> SparkConf:
    settings = {**_SETTINGS, "spark.master": master, "spark.sql.warehouse.dir": folder}
    if master.startswith(LOCAL):
        settings |= {**_LOOPBACK, "spark.driver.memory": heap(memory_bytes())}
        settings["spark.python.daemon.module"] = "gateway.night.reconcile.local_python"
    settings |= extra
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _start(conf: SparkConf, sink: TextIO, log: Path) -> tuple[SparkSession, Any]:
    """Return a new session, and its Java process with what py4j knows of it."""
    if conf.get("spark.master", LOCAL).startswith(LOCAL):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the default is python3 on PATH
    java: Any = None  # py4j ships no types
    handler = signal.getsignal(signal.SIGINT)  # Spark replaces it by one that cancels all jobs
    try:
        # A process group of its own: a signal to that of the command reaches neither Java nor its
        # tasks, and the command ends them when its work is done.
        options = {"stdout": sink, "stderr": sink, "process_group": 0}
        java = launch_gateway(conf, options)  # type: ignore[no-untyped-call]  # pyspark left it untyped
        return SparkSession(SparkContext(conf=conf, gateway=java)), java
    except (*SPARK_FAULTS, OSError) as error:
        text = f"spark: does not start on {conf.get('spark.master')!r}: {root_cause(error)}"
        _end(java)  # after the error text, which is read from the Java process
        raise ReconcileError("\n".join([text, *_log_lines(log)])) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def _log_lines(log: Path) -> list[str]:
    """Return the last lines of the log without stack frames."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if not line.startswith(("\t", "    at "))][-_MAX_LOG_LINES:]


def _raise_if_ended(java: Untyped, log: Path, error: Exception) -> None:
    """Raise the cause of `error` when Java has ended: then its text is a refused connection.

    Raises:
        ReconcileError: Java has ended; the text ends with the last lines of its log.
    """
    with suppress(TimeoutExpired):
        status = java.proc.wait(_END_TIMEOUT)
        text = f"spark: Java ended with status {status} (-9: killed, perhaps for its memory)"
        raise ReconcileError("\n".join([text, *_log_lines(log)])) from error


def _stop(spark: SparkSession) -> None:
    """Stop the session, so that a new one can start; no error when Java has ended."""
    try:
        with catch_warnings():
            simplefilter("ignore", RuntimeWarning)  # Java has ended, and the error says so
            spark.stop()
    except (Py4JError, OSError):
        spark.sparkContext.stop()  # the rest, without Java


def _end(java: Untyped) -> None:
    """End the Java process, so that the next session starts a new one.

    The class `SparkContext` keeps the first Java process of a Python for all later contexts, also
    after `stop`, and takes another one only when it has none. No public function drops it: without
    these two assignments, every later session of this Python would ask a process that has ended.
    """
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001  # the reason is above
    if java is not None:
        with suppress(Py4JError, OSError):  # it has ended by itself
            java.shutdown()
        with suppress(OSError):
            java.proc.stdin.close()  # it exits at the end of its input
        java.proc.wait()
