"""The files of the slim image: its size, no tools, its list of packages and their licences."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import gateway
from tests.deploy.container import HARDENED
from tests.deploy.engine import Engine
from tests.deploy.test_lock import locked

LARGEST = 200_000_000  # bytes over the base image; Arrow has 100 MB of them, Python 46, NumPy 21
Shell = Callable[[str], str]


@pytest.fixture
def shell(engine: Engine, slim: str) -> Shell:
    """Return a function that runs a shell command in a new container of the image."""
    return lambda script: engine.run(
        "run", "--rm", *HARDENED, "--entrypoint", "sh", slim, "-c", script
    )


def test_the_image_is_small(engine: Engine, base: str, slim: str) -> None:
    size, below = (
        int(engine.run("image", "inspect", "--format", "{{.Size}}", name)) for name in (slim, base)
    )

    assert size - below <= LARGEST


def test_the_image_has_no_installer_and_no_compiler(shell: Shell) -> None:
    names = "pip pip3 gcc cc make git curl wget"
    found = shell(f"for name in {names}; do command -v $name; done; true")

    assert found == ""
    assert shell("command -v gateway") == "/opt/gateway/bin/gateway"


def test_the_image_lists_its_packages(shell: Shell) -> None:
    document = json.loads(shell("cat /usr/share/gateway/sbom.cdx.json"))
    components = {each["purl"]: each for each in document["components"]}

    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["version"] == gateway.__version__
    python = {f"pkg:pypi/{name}@{version}" for name, version in locked("slim").items()}
    assert {each for each in components if each.startswith("pkg:pypi/")} == python
    assert all("expression" in components[each]["licenses"][0] for each in python)
    installed = set(shell("dpkg-query --show --showformat='${Package}\n'").splitlines())
    debian = [each["name"] for each in components.values() if each["purl"].startswith("pkg:deb/")]
    assert set(debian) == installed
    assert len(components) == len(document["components"]) == len(python) + len(installed)


def test_the_list_of_packages_conforms_to_its_schema(shell: Shell) -> None:
    version = import_module("cyclonedx.schema").SchemaVersion.V1_6
    validator = import_module("cyclonedx.validation.json").JsonStrictValidator(version)

    assert validator.validate_str(shell("cat /usr/share/gateway/sbom.cdx.json")) is None


def test_the_image_has_the_licences_of_its_packages(shell: Shell) -> None:
    texts = "find /opt/gateway -ipath '*.dist-info/*' -iname '*licen*' -o -iname 'copying*'"
    licensed = {Path(each).parts[6] for each in shell(texts).splitlines() if "dist-info" in each}
    debian = "for name in python3.11 libssl3; do test -s /usr/share/doc/$name/copyright; done"

    assert {name.partition("-")[0] for name in licensed} >= {"gateway", "numpy", "pyarrow"}
    shell(debian)


@pytest.mark.parametrize(
    "statement",
    [
        "from pyarrow import fs; fs.S3FileSystem(region='x', anonymous=True)",
        "from pyarrow import fs; fs.HadoopFileSystem",
        "import pyarrow.dataset, pyarrow.parquet, pyarrow.compute",
        "import solace.messaging.messaging_service",
        "import numpy; numpy.random.default_rng(1).integers(5)",
        "import gateway.tracing.otlp",
        "from rich.traceback import install; install()",
    ],
)
def test_the_trimmed_packages_load(shell: Shell, statement: str) -> None:
    shell(f'python -c "{statement}"')
