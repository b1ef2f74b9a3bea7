"""Compile the Java helper classes: `python -m gateway.endpoints.jms.build_jars`.

The package contains the jars, so that users need no compiler. Every build with the same major
version of javac gives the same bytes; a test compares them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gateway.endpoints.jms.jakarta import make_jar, rewrite_jar
from gateway.errors import DriverMissingError

FOLDER = Path(__file__).parent
SOURCES = FOLDER / "java" / "gateway" / "jms"
JMS_API = Path("/usr/share/java/geronimo-jms_1.1_spec.jar")  # Debian: libgeronimo-jms-1.1-spec-java
JAVA_RELEASE = "8"  # the oldest Java that runs the classes
JAVAC_VERSION = 17  # the major version of javac that made the jars of the package


def jar_path(package: str, folder: Path = FOLDER) -> Path:
    """Return the path of the jar for `javax` or `jakarta`."""
    return folder / f"gateway-jms-{package}.jar"


def compile_jar(api: Path = JMS_API) -> bytes:
    """Return the jar for `javax.jms`, compiled against `api`.

    Raises:
        DriverMissingError: the compiler or the jar with the interfaces is missing.
    """
    javac = shutil.which("javac")
    if javac is None or not api.exists():
        raise DriverMissingError(
            f"jms: javac or {api} is missing; install default-jdk-headless and"
            " libgeronimo-jms-1.1-spec-java"
        )
    with tempfile.TemporaryDirectory() as folder:
        command = [javac, "-g:none", "-encoding", "UTF-8", "-Xlint:-options"]
        command += ["--release", JAVA_RELEASE, "-cp", str(api), "-d", folder]
        command += sorted(map(str, SOURCES.glob("*.java")))
        subprocess.run(command, check=True)  # noqa: S603  # the compiler, on the package's own files
        root = Path(folder)
        return make_jar(
            {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.class")}
        )


def main(folder: Path = FOLDER) -> None:
    jar = compile_jar()
    jar_path("javax", folder).write_bytes(jar)
    jar_path("jakarta", folder).write_bytes(rewrite_jar(jar))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
