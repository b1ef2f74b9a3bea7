"""Whether Spark can run here, in words that say what to install; it loads no Spark itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gateway.errors import DriverMissingError

OLDEST_JAVA: Final = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_HINT: Final = "install Java 17 or later (Debian: apt-get install default-jre-headless)"


def check_driver() -> None:
    """Return when PySpark and a Java that can run it are there.

    Raises:
        DriverMissingError: one of them is absent or too old.
    """
    if find_spec("pyspark") is None:
        raise DriverMissingError(
            "reconcile: PySpark is not installed; pip install 'gateway[reconcile]'"
        )
    java = _java()
    found = _VERSION.search(_version(java))
    if found is None:
        raise DriverMissingError(f"reconcile: {java} does not say its version; {_HINT}")
    if int(found[1]) < OLDEST_JAVA:
        raise DriverMissingError(
            f"reconcile: {java} is Java {found[1]}, the oldest Spark runs on is {OLDEST_JAVA};"
            f" {_HINT}"
        )


def _java() -> str:
    """The Java Spark's own scripts would take."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None:
        where = f"under JAVA_HOME {home!r}" if home else "on PATH"
        raise DriverMissingError(f"reconcile: no java {where}; {_HINT}")
    return java


def _version(java: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # the user's own Java
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout
