"""The URL and the settings by which Spark opens an archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.location import parse_location
from gateway.reconcile.input.spark_paths import archive_url, hadoop_settings, literal_path


@pytest.mark.parametrize(
    ("archive", "url"),
    [
        pytest.param("/var/a", "file:/var/a", id="folder"),
        pytest.param("s3://b/p?region=eu", "s3a://b/p", id="s3"),
        pytest.param("hdfs://n:8020/p/", "hdfs://n:8020/p", id="hdfs"),
        pytest.param("viewfs://night/p", "viewfs://night/p", id="viewfs"),
    ],
)
def test_spark_opens_the_archive_through_hadoop(archive: str, url: str) -> None:
    assert archive_url(parse_location(archive)) == url


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        pytest.param("", {}, id="none"),
        pytest.param("?region=eu", {"fs.s3a.endpoint.region": "eu"}, id="region"),
        pytest.param(
            "?endpoint_override=h:9000&scheme=http",
            {"fs.s3a.endpoint": "http://h:9000", "fs.s3a.path.style.access": "true"},
            id="endpoint",
        ),
    ],
)
def test_the_options_of_the_url_become_settings_of_hadoop(
    options: str, settings: dict[str, str]
) -> None:
    assert hadoop_settings(parse_location(f"s3://b/p{options}")) == settings


def test_pattern_characters_of_a_path_are_escaped() -> None:
    assert literal_path(Path("/a/[b]{c}*?")) == r"/a/\[b\]\{c\}\*\?"
