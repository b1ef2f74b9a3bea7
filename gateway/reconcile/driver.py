"""The requirements of Spark: PySpark, pandas and Java, before they are loaded, and memory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gateway.errors import DriverMissingError, ReconcileError

OLDEST_JAVA: Final = 17
ANSWER_TIME: Final = 300.0  # seconds; a busy machine takes half a minute for a good Java
_PACKAGES: Final = {"pyspark": "PySpark", "pandas": "pandas"}  # its `mapInArrow` asks for pandas
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
CGROUPS: Final = Path("/sys/fs/cgroup")
_UNLIMITED: Final = 1 << 60  # version 1 writes a number above it, where no limit is set
_OWN: Final = Path("/proc/self/cgroup")
_HINT: Final = "install Java 17 or later (Debian: apt-get install default-jre-headless)"


def check_driver() -> None:
    """Check that PySpark, pandas and a suitable Java are installed.

    Raises:
        DriverMissingError: one of them is absent or too old; the text says what to install.
        ReconcileError: Java does not answer.
    """
    for package, name in _PACKAGES.items():
        if find_spec(package) is None:
            raise DriverMissingError(
                f"reconcile: {name} is not installed; pip install 'gateway[reconcile]'"
            )
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


def memory_bytes(root: Path = CGROUPS, own: Path = _OWN) -> int:
    """Return the memory that this process may use.

    A limit of a group above its own holds, too.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for folder in _folders(root, own):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _text(folder / name)
            if text.isdecimal() and 0 < int(text) < _UNLIMITED:
                limits.append(int(text))
    return min(limits)


def heap(memory: int) -> str:
    """Return the heap of a local Spark: a quarter of the memory, from 512 MB to 4 GB.

    Spark spills the rest to disk, and the Python processes need their own part.
    """
    return f"{min(max(memory >> 22, 512), 4096)}m"


def _folders(root: Path, own: Path) -> Iterator[Path]:
    """Yield the cgroup folders of this process for memory, and those above them.

    In a container, the process sees its own group as the root.
    """
    yield from (root, root / "memory")
    for line in _text(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in {"", "memory"}:
            group = Path(path.lstrip("/"))
            yield from (root / controllers / each for each in (group, *group.parents))


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip()
    return ""
