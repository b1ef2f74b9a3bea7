"""The jars of the JMS endpoint: built from their sources, and rewritten from javax to jakarta."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from deploy import jms_jars
from deploy.jms_jars import rewrite_class, rewrite_jar
from gateway.errors import WireError


def test_the_jakarta_jar_is_the_rewritten_javax_jar() -> None:
    jar = jms_jars.jar_path("javax").read_bytes()

    assert rewrite_jar(jar) == jms_jars.jar_path("jakarta").read_bytes()
    with zipfile.ZipFile(jms_jars.jar_path("jakarta")) as made:
        for name in made.namelist():
            assert b"javax/jms" not in made.read(name)


@pytest.mark.parametrize("data", [b"", b"PK", b"\xca\xfe\xba\xbe\0\0\0\x34\0\x02\xff\0\0"])
def test_rewriting_refuses_bytes_that_are_no_class_file(data: bytes) -> None:
    with pytest.raises(WireError, match="class"):
        rewrite_class(data)


def _javac_version() -> int:
    javac = shutil.which("javac")
    if javac is None:
        return 0
    result = subprocess.run([javac, "-version"], capture_output=True, text=True, check=True)  # noqa: S603  # the compiler itself
    return int((result.stdout or result.stderr).split()[1].partition(".")[0])


@pytest.mark.skipif(not jms_jars.JMS_API.exists(), reason=f"no {jms_jars.JMS_API}")
def test_the_jars_match_their_sources(tmp_path: Path) -> None:
    if _javac_version() != jms_jars.JAVAC_VERSION:
        pytest.skip(f"no javac {jms_jars.JAVAC_VERSION}")
    jms_jars.main(tmp_path)

    for package in ("javax", "jakarta"):
        built, packaged = jms_jars.jar_path(package, tmp_path), jms_jars.jar_path(package)
        assert built.read_bytes() == packaged.read_bytes()
