"""Files of an archive through the session's Hadoop file system: here, in S3 or HDFS alike.

It moves, removes and lists; rows are Spark's business. Every path is relative to the archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from gateway.archive.location import Place
from gateway.errors import ReconcileError
from gateway.reconcile.input.reading import literal

_PARTS: Final = 3  # of a path: date, hour and file, which no two segments share
_ABSENT: Final = "java.io.FileNotFoundException"
LISTING: Final = T.StructType([T.StructField("place", T.StringType())])


@dataclass(frozen=True, slots=True)
class Taken:
    """What a folder had in it: files, and their bytes."""

    files: int = 0
    size: int = 0


def url_of(place: Place) -> str:
    """The archive at `place` as Hadoop spells it; what S3 needs stands in Hadoop's own settings.

    Raises:
        ReconcileError: it has options that only the gateway understands.
    """
    if not place.url:
        return f"file:{place.local.resolve()}"
    bare, _, options = place.url.partition("?")
    if options:
        raise ReconcileError(
            f"archive {bare}: Spark does not take {options!r}; set spark.hadoop.fs.s3a.* instead"
        )
    return f"s3a{bare.removeprefix('s3')}" if bare.startswith("s3:") else bare


@contextmanager
def told(place: Place, what: str) -> Iterator[None]:
    """What Spark and Hadoop raise inside becomes one line that says which archive and step.

    Raises:
        ReconcileError: one of them failed.
    """
    try:
        yield
    except (PySparkException, Py4JError) as fault:
        where = f"archive {place.url or place.local}"
        raise ReconcileError(f"{where}: {what}: {said(fault)}") from fault


def said(fault: Exception) -> str:
    """What went wrong in Java, without its frames; what Spark says of itself otherwise."""
    java: Any = getattr(fault, "java_exception", None)
    text = str(java.toString() if java is not None else fault)
    return (text.splitlines() or [type(fault).__name__])[0]


class Files:
    """The files of one archive."""

    def __init__(self, spark: SparkSession, place: Place) -> None:
        """Find the file system; Py4JError when its kind is unknown here or it is away."""
        self._spark, self.url = spark, url_of(place).rstrip("/")
        java: Any = spark.sparkContext._jvm  # noqa: SLF001  # the only way to the file system
        configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        self._path: Any = java.org.apache.hadoop.fs.Path
        self._io: Any = java.org.apache.hadoop.io.IOUtils
        self._system: Any = self._path(self.url).getFileSystem(configuration)

    def names(self, folder: str = "") -> list[str]:
        """What lies in `folder`, in order; nothing when it is absent."""
        found = _unless_absent(self._system.listStatus, self._at(folder))
        return sorted(str(each.getPath().getName()) for each in found or ())

    def read(self, path: str) -> bytes | None:
        """A small file; None when it is absent."""
        stream = _unless_absent(self._system.open, self._at(path))
        if stream is None:
            return None
        try:
            return bytes(self._io.readFullyToByteArray(stream))
        finally:
            stream.close()

    def remove(self, path: str) -> Taken:
        """Remove `path` with all in it; nothing happens when it is absent."""
        found = _unless_absent(self._system.getContentSummary, self._at(path))
        if found is None:
            return Taken()
        self._system.delete(self._at(path), True)
        return Taken(found.getFileCount(), found.getLength())

    def replace(self, new: str, old: str) -> None:
        """Put the folder `new` into the place of `old`."""
        self._system.delete(self._at(old), True)
        if not self._system.rename(self._at(new), self._at(old)):
            raise ReconcileError(f"{self.url}/{new}: cannot be renamed to {old!r}")

    def parquet(self, folder: str = "") -> DataFrame:
        """The files below `folder` that belong to a date, as date, hour and name; unread."""
        if folder and not self.names(folder):
            return self._spark.createDataFrame([], LISTING)
        found = (
            self._spark.read.format("binaryFile")
            .option("recursiveFileLookup", "true")
            .option("ignoreMissingFiles", "true")
            .option("pathGlobFilter", "*.parquet")
            .load(self.inside(folder) if folder else self.glob(folder))
        )
        place = F.substring_index("path", "/", -_PARTS)
        return found.select(place.alias("place")).where(F.col("place").startswith("date="))

    def glob(self, path: str) -> str:
        """`path` as Spark reads and writes it."""
        return literal(self.address(path))

    def inside(self, folder: str, names: str = "*") -> str:
        """What lies in `folder`, as Spark reads it; one with `_` it would call hidden."""
        return f"{self.glob(folder)}/{names}"

    def address(self, path: str) -> str:
        """`path` as a whole; the archive itself when it is empty."""
        return f"{self.url}/{path}" if path else self.url

    def _at(self, path: str) -> Any:  # noqa: ANN401
        return self._path(self.address(path))


def _unless_absent(work: Any, *given: Any) -> Any:  # noqa: ANN401  # functions of Java
    try:
        return work(*given)
    except Py4JError as fault:
        java: Any = getattr(fault, "java_exception", None)
        if java is not None and java.getClass().getName() == _ABSENT:
            return None
        raise
