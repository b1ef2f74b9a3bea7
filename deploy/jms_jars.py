"""Compile the Java helper classes of the JMS endpoint: `make jms-helper`.

The package contains the jars, so that users need no compiler. Every build with the same major
version of javac gives the same bytes; a test compares them. The jar for `jakarta.jms` is the one
for `javax.jms` with other names in its constant pools.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path
from struct import Struct

from gateway.errors import DriverMissingError, WireError

FOLDER = Path(__file__).parents[1] / "gateway" / "endpoints" / "jms"
SOURCES = FOLDER / "java" / "gateway" / "jms"
JMS_API = Path("/usr/share/java/geronimo-jms_1.1_spec.jar")  # Debian: libgeronimo-jms-1.1-spec-java
JAVA_RELEASE = "8"  # the oldest Java that runs the classes
JAVAC_VERSION = 17  # the major version of javac that made the jars of the package
OLD, NEW = b"javax/jms", b"jakarta/jms"
OLD_DOTTED, NEW_DOTTED = b"javax.jms", b"jakarta.jms"
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)  # fixed, so that equal classes give equal jars

_U16 = Struct(">H")
_MAGIC = b"\xca\xfe\xba\xbe"
_UTF8 = 1
_CONSTANT_SIZES = {
    3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5,
    19: 3, 20: 3,
}  # fmt: skip  # bytes of a constant by its tag (JVM Specification, 4.4)
_DOUBLE_SLOT = frozenset({5, 6})  # a long or double takes two slots of the pool


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


def rewrite_class(data: bytes) -> bytes:
    """Return the class file with `jakarta.jms` in place of `javax.jms`.

    Raises:
        WireError: `data` is not a class file.
    """
    if data[:4] != _MAGIC:
        raise WireError("jms: not a class file")
    count = _U16.unpack_from(data, 8)[0]
    parts = [data[:10]]
    position, index = 10, 1
    while index < count:
        tag = data[position]
        if tag == _UTF8:
            end = position + 3 + _U16.unpack_from(data, position + 1)[0]
            text = data[position + 3 : end].replace(OLD, NEW).replace(OLD_DOTTED, NEW_DOTTED)
            parts.append(bytes((tag,)) + _U16.pack(len(text)) + text)
        elif tag in _CONSTANT_SIZES:
            end = position + _CONSTANT_SIZES[tag]
            parts.append(data[position:end])
        else:
            raise WireError(f"jms: a class file has a constant with the unknown tag {tag}")
        position = end
        index += 2 if tag in _DOUBLE_SLOT else 1
    parts.append(data[position:])
    return b"".join(parts)


def rewrite_jar(data: bytes) -> bytes:
    """Return the jar with rewritten classes and paths, and without signatures."""
    with zipfile.ZipFile(BytesIO(data)) as jar:
        classes = {
            name.replace(OLD.decode(), NEW.decode()): rewrite_class(jar.read(name))
            for name in jar.namelist()
            if name.endswith(".class") and not name.startswith("META-INF/")
        }
        others = {
            name: jar.read(name)
            for name in jar.namelist()
            if not name.endswith((".class", "/")) and not name.endswith((".SF", ".RSA", ".DSA"))
        }
    return make_jar(classes | others)


def make_jar(files: dict[str, bytes]) -> bytes:
    """Return a jar whose bytes depend only on `files`."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as jar:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, ENTRY_TIME)
            entry.external_attr = 0o644 << 16
            jar.writestr(entry, files[name])
    return buffer.getvalue()


def main(folder: Path = FOLDER) -> None:
    jar = compile_jar()
    jar_path("javax", folder).write_bytes(jar)
    jar_path("jakarta", folder).write_bytes(rewrite_jar(jar))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
