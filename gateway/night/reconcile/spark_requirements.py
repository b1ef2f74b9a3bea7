"""Check of the requirements of Spark: PySpark, pandas and Java, before they are loaded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gateway.errors import DriverMissingError, ReconcileError
from gateway.extras import not_installed

OLDEST_JAVA: Final = 17
ANSWER_TIME: Final = 300.0  # seconds; a busy machine takes half a minute for a good Java
_PACKAGES: Final = ("pyspark", "pandas")  # its `mapInArrow` asks for pandas
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_HINT: Final = "install Java 17 or later (Debian: apt-get install default-jre-headless)"


def check_driver() -> None:
    """Check that PySpark, pandas and a suitable Java are installed.

    Raises:
        DriverMissingError: one of them is absent or too old; the text says what to install.
        ReconcileError: Java does not answer.
    """
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise DriverMissingError(f"reconcile: {not_installed(package, 'reconcile')}")
    java = _java()
    found = _VERSION.search(_version(java))
    if found is None:
        raise _no_java(f"{java} reports no version")
    if int(found[1]) < OLDEST_JAVA:
        raise _no_java(f"{java} is Java {found[1]}, and Spark needs {OLDEST_JAVA} or later")


def _java() -> str:
    """Return the path of the Java that Spark's scripts use."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None:
        where = f"under JAVA_HOME {home!r}" if home else "on PATH"
        raise _no_java(f"no java {where}")
    return java


def _no_java(text: str) -> DriverMissingError:
    return DriverMissingError(f"reconcile: {text}; {_HINT}")


def _version(java: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # the user's own Java
            [java, "-version"], capture_output=True, text=True, timeout=ANSWER_TIME, check=False
        )
    except OSError as error:
        raise _no_java(f"{java} does not start: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ReconcileError(
            f"reconcile: `{java} -version` has not ended after {ANSWER_TIME:g} s; run it"
            " by hand, or try again when the machine is less busy"
        ) from error
    if done.returncode:
        output = (done.stderr + done.stdout).strip().partition("\n")[0]
        raise _no_java(f"`{java} -version` ends with {done.returncode}: {output}")
    return done.stderr + done.stdout
