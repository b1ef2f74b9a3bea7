"""The artefacts of `make release`: installed into an empty environment, and run there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

import gateway
import gateway.cli
from deploy.artefacts import SUMS, write_documents
from deploy.release import ROOT
from gateway.cli.shell.files import FILES
from tests.docs_groups import group

VERSION = gateway.__version__
OUTSIDE = {
    name: value
    for name, value in os.environ.items()
    if name not in {"PYTHONPATH", "PYTHONSAFEPATH", "VIRTUAL_ENV"}
}


def run(command: Sequence[object], folder: Path, given: str = "") -> str:
    done = subprocess.run(  # noqa: S603  # our own commands
        [*map(str, command)], cwd=folder, env=OUTSIDE, input=given,
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_uv_and_pipx_install_the_wheel_as_the_page_prints_it(tmp_path: Path) -> None:
    tools, release = tmp_path / "tools", tmp_path / "release"
    run([sys.executable, "-m", "venv", tools], tmp_path)
    run([tools / "bin/pip", "install", "--quiet", "hatchling", "pipx", "uv"], tmp_path)
    build = [tools / "bin/python", "-m", "hatchling", "build", "--target", "wheel"]
    run([*build, "--directory", release], ROOT)
    commands = group("installed")
    assert [each.words[0] for each in commands] == ["uv", "pipx"]

    for command in commands:
        home = tmp_path / command.words[0]
        settings = {
            "PATH": f"{tools / 'bin'}:{os.environ['PATH']}",
            "UV_TOOL_DIR": home / "tools", "UV_TOOL_BIN_DIR": home / "bin",
            "PIPX_HOME": home / "home", "PIPX_BIN_DIR": home / "bin", "PIPX_MAN_DIR": home / "man",
        }  # fmt: skip
        run(["env", *(f"{name}={value}" for name, value in settings.items()),
             "sh", "-c", command.text], release)  # fmt: skip
        shown = run([home / "bin/gateway", "try"], tmp_path, "plant/v1.2//temperature 21.5\n")
        assert "  -> nats plant.v1%2E2.%-.temperature 21.5\n" in shown


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_release_is_installed_and_runs_without_the_checkout(tmp_path: Path) -> None:
    folder, venv, empty = tmp_path / "release", tmp_path / "venv", tmp_path / "empty"
    printed = run([sys.executable, "-m", "deploy.artefacts", folder], ROOT)
    empty.mkdir()

    for line in (folder / SUMS).read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    names = {each.name for each in folder.iterdir()}
    wheel = f"gateway-{VERSION}-py3-none-any.whl"
    kinds = (".tar.gz", ".cdx.json", "-docs.tar.gz")
    assert names >= {wheel, "install.md", *(f"gateway-{VERSION}{each}" for each in kinds)}
    assert (f"gateway-{VERSION}-slim.tar.gz" in names) is not ("left out: the image" in printed)
    assert f"git tag --sign v{VERSION}" in printed or "commit them first" in printed
    listed = json.loads((folder / f"gateway-{VERSION}.cdx.json").read_text())
    assert listed["metadata"]["component"]["version"] == VERSION
    assert {"pyarrow", "pyyaml"} <= {each["name"] for each in listed["components"]}

    with tarfile.open(folder / f"gateway-{VERSION}.tar.gz") as archive:
        held = {each.name.partition("/")[2] for each in archive if not each.isdir()}
    tracked = set(run(["git", "ls-files"], ROOT).splitlines())
    assert held == {*tracked, "PKG-INFO"}

    run([sys.executable, "-m", "venv", "--without-pip", venv], empty)
    for package in (wheel, f"gateway-{VERSION}.tar.gz"):
        pip = [sys.executable, "-m", "pip", "--python", venv / "bin/python", "--quiet"]
        run([*pip, "install", "--force-reinstall", folder / package], empty)
        program = venv / "bin/gateway"
        assert run([program, "--version"], empty) == f"gateway {VERSION}\n"
        shown = run([program, "try"], empty, "plant/v1.2//temperature 21.5\n")
        assert "  -> ems plant.v1%2E2.%-.temperature 21.5\n" in shown
        files = tmp_path / f"files-{package}"
        run([program, "files", files], empty)
        for name in FILES:
            assert (files / name).exists(), name
        run([program, "test", "--without-secrets", files / "mappings/pairs/mqtt-ems.yaml"], empty)


def test_the_source_archive_has_the_checkout() -> None:
    tracked = run(["git", "ls-files"], ROOT).splitlines()
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]

    assert built["targets"]["sdist"] == {
        "include": sorted({f"/{name.partition('/')[0]}" for name in tracked})
    }


def test_every_link_of_the_documents_leads_to_a_file_of_the_release(tmp_path: Path) -> None:
    write_documents(tmp_path, VERSION)
    run(["tar", "xf", tmp_path / f"gateway-{VERSION}-docs.tar.gz"], tmp_path)

    pages = [*tmp_path.rglob("*.md")]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"(?:\]\(|src(?:set)?=\")([^)#\"\s]+)", page.read_text())
        if ":" not in link
    ]
    assert [(page, link) for page, link in links if not (page.parent / link).exists()] == []
    assert {"install.md", "README.md", "delivery.md"} <= {each.name for each in pages}
    assert (tmp_path / "install.md", f"gateway-{VERSION}-docs/docs/deployment.md") in links


def test_the_compose_file_of_the_page_has_a_bridge_without_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/install.md").read_text()
    (text,) = re.findall(r"```yaml\n# compose\.yaml\n(.*?)```", page, re.DOTALL)
    services, configs = (yaml.safe_load(text)[each] for each in ("services", "configs"))
    config = tmp_path / "bridge.yaml"
    config.write_text(configs["bridge"]["content"])

    assert gateway.cli.main(["check", str(config)]) == 0, capsys.readouterr()
    hosts = {each["host"] for each in yaml.safe_load(config.read_text())["endpoints"].values()}
    assert hosts == set(services["gateway"]["depends_on"]) <= set(services)
    assert services["gateway"]["command"][1] == services["gateway"]["configs"][0]["target"]


def test_no_text_installs_a_package_of_this_name_from_an_index() -> None:
    tracked = run(["git", "ls-files", "gateway", "docs", "deploy", "README.md"], ROOT).split()
    wrong = re.compile(r"(?:pip|pipx|uv)\b[^\n]* install +['\"]?gateway\b(?!-)")
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".sh", ".yaml", ".1"} and path.is_file():
            assert not wrong.search(path.read_text()), name
