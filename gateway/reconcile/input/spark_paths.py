"""The paths by which Spark reads and writes the files of an archive, local or remote.

Spark reaches a remote archive through Hadoop: `s3://` becomes `s3a://`, and the options of the
gateway's URL become settings of Hadoop.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from pyspark.sql import SparkSession

from gateway.archive.location import ArchiveLocation

_PATTERN_CHARACTERS: Final = re.compile(r"([\\{}\[\]*?])")


def literal_path(text: str | Path) -> str:
    """Return a path or URL with escaped pattern characters, so that it matches itself only."""
    return _PATTERN_CHARACTERS.sub(r"\\\1", str(text))


def archive_url(location: ArchiveLocation) -> str:
    """Return the URL of the archive in Hadoop's spelling, without options."""
    if not location.url:
        return f"file:{location.local.resolve()}"
    url = location.url.partition("?")[0].rstrip("/")
    return f"s3a{url.removeprefix('s3')}" if url.startswith("s3:") else url


def hadoop_settings(location: ArchiveLocation) -> dict[str, str]:
    """Return the settings of Hadoop's S3 client that the options of the URL stand for."""
    options = dict(parse_qsl(location.url.partition("?")[2]))
    settings: dict[str, str] = {}
    if "region" in options:
        settings["fs.s3a.endpoint.region"] = options["region"]
    if "endpoint_override" in options:
        scheme = options.get("scheme", "https")
        settings["fs.s3a.endpoint"] = f"{scheme}://{options['endpoint_override']}"
        settings["fs.s3a.path.style.access"] = "true"
    return settings


def configure_session(spark: SparkSession, location: ArchiveLocation) -> None:
    """Apply `hadoop_settings` to the session."""
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  # no public way
    for name, value in hadoop_settings(location).items():
        hadoop.set(name, value)
