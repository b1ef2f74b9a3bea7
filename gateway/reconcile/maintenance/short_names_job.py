"""The job of the dictionary: read what the archive knows of names, write the table, tell faults.

ARCHIVE/_dictionary/ is replaced whole; `gateway.archive.schema` has its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F

from gateway.archive.layout import DICTIONARY, NAMES, PAIRS, parse_day
from gateway.archive.location import Place
from gateway.errors import ReconcileError
from gateway.reconcile.findings import Finding, error, warning
from gateway.reconcile.input.files import DAY, MANIFEST, Manifest, parse_manifest
from gateway.reconcile.input.hadoop import Files, said, told
from gateway.reconcile.lock import alone
from gateway.reconcile.maintenance import short_names, short_names_decode
from gateway.reconcile.progress import Say
from gateway.reconcile.schema import DICTIONARY_ROWS, PAIR_ROWS, ROWS

_NEW: Final = "_dictionary.new"
_SHOWN: Final = 100  # findings of a kind; the rest is counted
_NOTED: Final = "place string, table boolean"  # a file that a manifest names, as day table or not


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What was written: shortened names, those of them that were sent, to how many targets."""

    names: int
    sent: int
    targets: int
    findings: tuple[Finding, ...] = ()


def build(spark: SparkSession, place: Place, oldest: date | None, say: Say) -> Lexicon:
    """Make the dictionary of the archive anew; the old one stays until the new one is whole.

    With `oldest` a name is left out that was written down before that day and that no day uses.

    Raises:
        ReconcileError: Spark failed or the archive cannot be reached; the old one stays.
    """
    say("reading the shortened names")
    with (
        nullcontext() if place.url else alone(place.local),
        told(place, "the dictionary of shortened names was not made"),
    ):
        files = Files(spark, place)
        try:
            return _build(spark, files, oldest, say)
        except (PySparkException, Py4JError) as fault:
            say("Spark did not finish; reading again what can be read")
            text = f"names in files that cannot be read are left out; the first: {said(fault)}"
            found = _build(spark, files, oldest, say, corrupt=True)
            wrong = error("unreadable-file", PAIRS, text)
            return replace(found, findings=(*found.findings, wrong))
        finally:
            spark.catalog.clearCache()


def _build(
    spark: SparkSession, files: Files, oldest: date | None, say: Say, *, corrupt: bool = False
) -> Lexicon:
    lines = _lines(spark, files).persist()
    notes = short_names.written(lines).persist()
    known, findings = _manifests(spark, files)
    there = _counting(files, known).localCheckpoint()  # it is compared with a later one
    reader = spark.read.option("recursiveFileLookup", "true").option("ignoreMissingFiles", "true")
    reader = reader.option("ignoreCorruptFiles", str(corrupt))
    sent = short_names.used(_ends(spark, reader, files, there)).persist()
    found = short_names.meant(sent, notes).persist()
    say("writing the dictionary")
    table = short_names.entries(sent, found).unionByName(short_names.unused(notes, sent, oldest))
    ordered = table.orderBy("target", "name")
    ordered.write.mode("overwrite").parquet(files.address(_NEW))
    findings += _faults(lines) + _faults(found.withColumn("place", F.lit(PAIRS)))
    findings += _vanished(there, _counting(files, known), oldest, say)
    files.replace(_NEW, DICTIONARY)
    return _counted(spark, files, findings)


def _lines(spark: SparkSession, files: Files) -> DataFrame:
    if not any(name.endswith(".jsonl") for name in files.names(NAMES)):
        return spark.createDataFrame([], short_names_decode.LINE)
    stored = spark.read.format("binaryFile").load(files.inside(NAMES, "*.jsonl"))
    found = stored.select("path", "content")
    return spark.createDataFrame(
        found.rdd.map(tuple).mapPartitions(short_names_decode.lines), short_names_decode.LINE
    )


def _manifests(spark: SparkSession, files: Files) -> tuple[DataFrame, list[Finding]]:
    """What the manifests of all days say of files, and those that cannot be understood."""
    noted: list[tuple[str, bool]] = []
    findings: list[Finding] = []
    for name in filter(parse_day, files.names()):
        text = files.read(f"{name}/{MANIFEST}")
        try:
            manifest = Manifest() if text is None else parse_manifest(text, f"{name}/{MANIFEST}")
        except ReconcileError as fault:  # then every day table counts, and every segment
            findings.append(error("damaged-manifest", f"{name}/{MANIFEST}", str(fault)))
            manifest = Manifest({f"{DAY}/{each}": 0 for each in files.names(f"{name}/{DAY}")})
        noted += [(f"{name}/{each}", True) for each in manifest.tables]
        noted += [(f"{name}/{each}", False) for each in manifest.replaced]
    return spark.createDataFrame(noted, _NOTED), findings


def _counting(files: Files, known: DataFrame) -> DataFrame:
    """Files whose names count, those with name pairs of their own as `paired`.

    Left out are segments that day tables replace, and day tables that no manifest names.
    """
    rows, pairs = files.parquet(), files.parquet(PAIRS).withColumn("paired", F.lit(True))
    whole = F.col("place").contains(f"/{DAY}/")
    counts = F.when(whole, F.coalesce("table", F.lit(False))).otherwise(F.col("table").isNull())
    found = rows.join(pairs, "place", "left").join(known, "place", "left")
    return found.where(counts).select("place", F.coalesce("paired", F.lit(False)).alias("paired"))


def _ends(
    spark: SparkSession, reader: DataFrameReader, files: Files, there: DataFrame
) -> DataFrame:
    """The name pairs of all files; of a file that keeps none, its rows."""
    paired = there.where("paired").select("place")
    bare = [row["place"] for row in there.where("not paired").collect()]
    pairs = spark.createDataFrame([], PAIR_ROWS)
    if files.names(PAIRS):
        own = F.substring_index("_metadata.file_path", "/", -3)
        stored = reader.schema(PAIR_ROWS).parquet(files.inside(PAIRS)).withColumn("place", own)
        pairs = stored.join(paired, "place", "left_semi").drop("place")
    if not bare:
        return pairs
    rows = reader.schema(ROWS).parquet(*[files.glob(each) for each in bare])
    own_times = {"first_time": F.col("time"), "last_time": F.col("time"), "count": F.lit(1)}
    return pairs.unionByName(rows.withColumns(own_times), allowMissingColumns=True)


def _vanished(before: DataFrame, after: DataFrame, oldest: date | None, say: Say) -> list[Finding]:
    """Files that went while they were read: of an old day that is said, of another it is wrong."""
    gone = before.join(after, "place", "left_anti").groupBy(
        F.substring_index("place", "/", 1).alias("day")
    )
    findings: list[Finding] = []
    for row in gone.agg(F.count("*").alias("files")).orderBy("day").collect():
        day = parse_day(row["day"])
        if oldest is not None and day is not None and day < oldest:
            say(f"{row['files']} files of {day} went meanwhile: it is older than what is kept")
        else:
            text = f"{row['files']} files went while they were read"
            findings.append(error("vanished-file", row["day"], text))
    return findings


def _faults(judged: DataFrame) -> list[Finding]:
    """The findings in the columns `place`, `rule` and `text`, some of each rule and the count."""
    of_rule = Window.partitionBy("rule")
    wrong = judged.where(F.col("rule") != "").select("place", "rule", "text")
    ranked = wrong.withColumns(
        {
            "number": F.row_number().over(of_rule.orderBy("place", "text")),
            "total": F.count("*").over(of_rule),
        }
    )
    findings: list[Finding] = []
    for row in ranked.where(F.col("number") <= _SHOWN).orderBy("rule", "number").collect():
        weight = warning if row["rule"] == short_names_decode.TORN else error
        findings.append(weight(row["rule"], row["place"], row["text"]))
        if row["number"] == _SHOWN < row["total"]:
            more = f"{row['total'] - _SHOWN} more of these"
            findings.append(weight(row["rule"], row["place"], more))
    return findings


def _counted(spark: SparkSession, files: Files, findings: Sequence[Finding]) -> Lexicon:
    table = spark.read.schema(DICTIONARY_ROWS).parquet(files.inside(DICTIONARY, "*.parquet"))
    sent = F.when(F.col("target") != "", F.col("digest"))
    (row,) = table.agg(
        F.count_distinct("digest").alias("names"),
        F.count_distinct(sent).alias("sent"),
        F.count_distinct(F.when(F.col("target") != "", F.col("target"))).alias("targets"),
    ).collect()
    return Lexicon(row["names"], row["sent"], row["targets"], tuple(findings))
