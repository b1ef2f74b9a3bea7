"""The lock files of the images: pinned, complete, and consistent with pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.licences import closure

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = {
    "slim": {"nats", "rabbitmq", "kafka", "solace", "otel"},
    "jvm": {"nats", "rabbitmq", "kafka", "solace", "otel", "jms"},
    "spark": {"nats", "rabbitmq", "kafka", "solace", "otel", "jms", "reconcile"},
}
VARIANTS = pytest.mark.parametrize("variant", EXTRAS)
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


def pins(path: Path) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in PIN.findall(path.read_text())}


def locked(variant: str) -> dict[str, str]:
    return pins(ROOT / "deploy" / "lock" / f"{variant}.txt")


def wanted(variant: str) -> list[Requirement]:
    project = PROJECT["project"]
    texts = list(project["dependencies"])
    for extra in sorted(EXTRAS[variant]):
        texts += project["optional-dependencies"][extra]
    return [Requirement(text) for text in texts]


@VARIANTS
def test_a_lock_file_has_every_requirement_of_the_project(variant: str) -> None:
    pinned = locked(variant)

    for requirement in wanted(variant):
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"{name}: run `make lock`"
        assert requirement.specifier.contains(pinned[name]), f"{name}: run `make lock`"


@VARIANTS
def test_a_lock_file_has_no_other_package(variant: str) -> None:
    assert locked(variant).keys() == closure(EXTRAS[variant]), "run `make lock`"


@VARIANTS
def test_versions_are_those_of_the_tests(variant: str) -> None:
    tested = pins(ROOT / "constraints.txt")

    different = {
        name: (version, tested[name])
        for name, version in locked(variant).items()
        if tested.get(name, version) != version
    }
    assert different == {}, "run `make lock`"


@pytest.mark.parametrize("name", [*EXTRAS, "build"])
def test_every_package_has_its_hashes(name: str) -> None:
    text = (ROOT / "deploy" / "lock" / f"{name}.txt").read_text()
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]

    assert len(entries) == len(locked(name))
    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_build_tools_are_those_of_the_project() -> None:
    pinned = locked("build")

    for text in PROJECT["build-system"]["requires"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pinned[requirement.name])


def test_every_package_of_an_image_is_installed_with_its_hash() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    commands = [
        command
        for line in text.splitlines()
        for command in line.split("&&")
        if "/pip" in command and re.search(r" (install|wheel) ", command)
    ]

    assert len(commands) == 9
    for command in commands:
        from_local_files = "--no-index" in command or "/source" in command
        assert "--require-hashes" in command or from_local_files, command
