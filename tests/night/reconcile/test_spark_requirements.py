from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from gateway.errors import DriverMissingError, ReconcileError
from gateway.night.reconcile import spark_requirements


def java(folder: Path, output: str, then: str = "") -> None:
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{output}' >&2\n{then}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("output", ['openjdk version "17.0.15" 2025', 'java version "21" 2023'])
def test_a_new_java_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    java(tmp_path, output)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    spark_requirements.check_driver()

    assert spark_requirements.OLDEST_JAVA == 17


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        pytest.param('java version "1.8.0_402"', "is Java 8, and Spark needs 17 or", id="8"),
        pytest.param('openjdk version "11.0.2"', "is Java 11", id="11"),
        pytest.param("hello", "reports no version; install Java 17", id="no-version"),
    ],
)
def test_an_old_java_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, reason: str
) -> None:
    java(tmp_path, output)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(DriverMissingError, match=reason):
        spark_requirements.check_driver()


@pytest.mark.parametrize(
    ("then", "kind", "reason"),
    [
        pytest.param(
            "exec tail -f /dev/null", ReconcileError, "has not ended after 0.2 s", id="slow"
        ),
        pytest.param("exit 7", DriverMissingError, "ends with 7: openjdk version", id="failed"),
    ],
)
def test_a_java_that_does_not_end_well_is_an_error_with_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, kind: type[Exception], reason: str
) -> None:
    java(tmp_path, 'openjdk version "17.0.15" 2025', then)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(spark_requirements, "ANSWER_TIME", 0.2)

    with pytest.raises(kind, match=reason):
        spark_requirements.check_driver()


def test_an_absent_java_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(DriverMissingError, match=r"no java under JAVA_HOME .*; install Java 17"):
        spark_requirements.check_driver()


@pytest.mark.parametrize("absent", ["pyspark", "pandas"])
def test_an_absent_package_is_an_error(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    def without(package: str) -> object:
        return None if package == absent else find_spec(package)

    monkeypatch.setattr(spark_requirements, "find_spec", without)

    with pytest.raises(
        DriverMissingError, match=rf"'{absent}' is not installed; run: .*pip install .*'pyspark"
    ):
        spark_requirements.check_driver()
