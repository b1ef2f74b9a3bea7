"""The class-data archive of Java: written by its command, used by nights, ignored when damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.reconcile import session
from tests.waiting import PATIENCE

PROGRAM = """
import sys
from pathlib import Path
from gateway.reconcile import session

session.CLASS_ARCHIVE = Path(sys.argv[1])
with session.spark_session("local[1]", short=True) as spark:
    print(spark.range(3).count())
    java = spark.sparkContext._gateway.proc.pid
    print(sys.argv[1] in Path(f"/proc/{java}/maps").read_text())
"""


WRITE = """
import sys
from pathlib import Path
from gateway.reconcile.class_archive import write

write(Path(sys.argv[1]))
"""


def run(program: str, path: Path) -> list[str]:
    ended = subprocess.run(  # noqa: S603  # a program of this test
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE * 10,
        check=True,
    )
    return ended.stdout.split()


def test_an_installation_without_the_file_has_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "CLASS_ARCHIVE", tmp_path / "absent.jsa")

    assert session.java_options("-XX:+UseSerialGC") == "-XX:+UseSerialGC"


@pytest.mark.nightly
@pytest.mark.spark
def test_a_damaged_file_is_ignored(tmp_path: Path) -> None:
    damaged = tmp_path / "with space.jsa"
    damaged.write_bytes(b"no classes" * 10_000)

    assert run(PROGRAM, damaged) == ["3", "False"]


@pytest.mark.nightly
@pytest.mark.spark
def test_java_maps_the_written_file(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "spark.jsa"

    run(WRITE, path)

    assert run(PROGRAM, path) == ["3", "True"]
    assert [each.name for each in path.parent.iterdir()] == ["spark.jsa"]
