"""A quiet Spark session: what the Java process writes goes to a log, shown only on failure."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from gateway.errors import ReconcileError
from gateway.reconcile.zip_package import packed

LOCAL: Final = "local"
_TAIL: Final = 15  # lines of the log an error repeats

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.app.name": "gateway reconcile",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.filterPushdown": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # the stack, at each column made
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.files.openCostInBytes": str(256 << 10),  # segments are small and many
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "20000",  # listing here is faster
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # the archive writes them
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_LOOPBACK: Final[Mapping[str, str]] = {  # a laptop's own name need not resolve
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_SHORT: Final[Mapping[str, str]] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_NOTHING: Final[Mapping[str, str]] = {}


@contextmanager
def spark_session(
    master: str, extra: Mapping[str, str] = _NOTHING, *, short: bool = False
) -> Iterator[SparkSession]:
    """The session that runs already, which stays, or a new one, which is stopped at the end.

    A `short` one is compiled quickly rather than well, which halves the time of a small night.

    Raises:
        ReconcileError: Spark does not start; the text ends with its last log lines.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with tempfile.TemporaryDirectory(prefix="gateway-spark-") as folder:
        log = Path(folder, "spark.log")
        with log.open("w", encoding="utf-8") as sink:
            spark = _start(_conf(master, folder, {**(_SHORT if short else {}), **extra}), sink, log)
        try:
            if not master.startswith(LOCAL):
                spark.sparkContext.addPyFile(str(packed(Path(folder))))
            yield spark
        finally:
            _stop(spark)


@contextmanager
def submitted_session() -> Iterator[SparkSession]:
    """The session of a program that spark-submit started, with its settings before ours."""
    conf = SparkConf()
    local = conf.get("spark.master", LOCAL).startswith(LOCAL)
    for name, value in {**_SETTINGS, **(_LOOPBACK if local else {})}.items():
        conf.setIfMissing(name, value)
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _conf(master: str, folder: str, extra: Mapping[str, str]) -> SparkConf:
    settings = {
        **_SETTINGS,
        **({**_LOOPBACK, "spark.driver.memory": _heap()} if master.startswith(LOCAL) else {}),
        "spark.master": master,
        "spark.sql.warehouse.dir": folder,
        **extra,
    }
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _heap() -> str:
    """A quarter of this machine's memory, between 1 and 4 GB: what does not fit goes to disk."""
    bytes_here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(max(bytes_here >> 32, 1), 4)}g"


def _start(conf: SparkConf, sink: TextIO, log: Path) -> SparkSession:
    if conf.get("spark.driver.host"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if conf.get("spark.master", LOCAL).startswith(LOCAL):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else it takes python3 of PATH
    java: Any = None  # py4j ships no types
    try:
        java = launch_gateway(conf, {"stdout": sink, "stderr": sink})  # type: ignore[no-untyped-call]  # pyspark left it untyped
        return SparkSession(SparkContext(conf=conf, gateway=java))
    except (PySparkException, Py4JError, OSError) as error:
        told = f"spark: does not start on {conf.get('spark.master')!r}: {_first_line(error)}"
        _end(java)  # what it says is asked of it before
        raise ReconcileError("\n".join([told, *_said(log)])) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _said(log: Path) -> list[str]:
    """The last lines of the log a person can use: no stack frames."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if not line.startswith(("\t", "    at "))][-_TAIL:]


def _stop(spark: SparkSession) -> None:
    java: Any = spark.sparkContext._gateway  # noqa: SLF001  # there is no public way to end it
    spark.stop()
    _end(java)


def _end(java: Any) -> None:  # noqa: ANN401
    """End the Java process, so that the next session starts from nothing."""
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    if java is not None:
        java.shutdown()
        java.proc.stdin.close()  # its parent's end is what it waits for
        java.proc.wait()
