from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import DriverMissingError
from gateway.reconcile import driver


def java(folder: Path, says: str) -> None:
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize("says", ['openjdk version "17.0.15" 2025', 'java version "21" 2023'])
def test_a_java_that_is_new_enough_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    driver.check_driver()

    assert driver.OLDEST_JAVA == 17


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        pytest.param('java version "1.8.0_402"', "is Java 8, the oldest .* is 17; inst", id="8"),
        pytest.param('openjdk version "11.0.2"', "is Java 11", id="11"),
        pytest.param("hello", "does not say its version; install Java 17", id="no-version"),
    ],
)
def test_another_java_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, reason: str
) -> None:
    java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(DriverMissingError, match=reason):
        driver.check_driver()


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(DriverMissingError, match=r"no java under JAVA_HOME .*; install Java 17"):
        driver.check_driver()


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(driver, "find_spec", nothing)

    with pytest.raises(DriverMissingError, match=r"pip install 'gateway\[reconcile\]'"):
        driver.check_driver()
