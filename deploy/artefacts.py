"""Builds what a release publishes into one folder: `make release`.

python -m deploy.artefacts [FOLDER]        (dist/gateway-VERSION)

Wheel, source archive, the slim image as an archive for `docker load`, the list of packages
(CycloneDX), the documents, the page that says how to install each, and SHA256SUMS. Without a
Docker engine the image is left out. At the end it prints the commands that sign and tag with the
releaser's key.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from deploy.release import ROOT, ReleaseError, current

SUMS: Final = "SHA256SUMS"
DOCKER: Final = os.environ.get("DOCKER", "docker")
IMAGE: Final = "gateway:slim"
DOCUMENTS: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs", "mappings")
_PAGE_LINK: Final = re.compile(r"\]\((?=[\w/-]+\.md)")  # to a page beside this one


def main() -> int:
    version = current(ROOT)
    parser = argparse.ArgumentParser(description="Build what a release publishes.")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / f"dist/gateway-{version}")
    folder: Path = parser.parse_args().folder.absolute()
    try:
        build(folder, version)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def build(folder: Path, version: str) -> None:
    """Write every artefact into the new `folder`, and print what to do with them.

    Raises:
        ReleaseError: the folder has files, or a step failed, whose error output is the text.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ReleaseError(f"{folder}: has files already; remove it, or name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gateway-release-") as scratch:
        _packages(folder, Path(scratch) / "build")
        _list_of_packages(folder, Path(scratch) / "packages", version)
    image = _image(folder, version)
    write_documents(folder, version)
    _sums(folder)
    for each in sorted(folder.iterdir()):
        print(f"{each.stat().st_size:>12,}  {each.name}")
    if not image:
        print(f"left out: the image, because no engine answers `{DOCKER} version`")
    print(*_commands(folder, version), sep="\n")


def _packages(folder: Path, environment: Path) -> None:
    """Build source archive and wheel with the tools of the lock file; the commit dates them."""
    python = _environment(environment, "--requirement", ROOT / "deploy/lock/build.txt")
    when = _run(["git", "-C", ROOT, "log", "-1", "--format=%ct"]).strip()
    build = [python, "-m", "hatchling", "build", "--target", "sdist", "--target", "wheel"]
    _run([*build, "--directory", folder], {"SOURCE_DATE_EPOCH": when})


def _list_of_packages(folder: Path, environment: Path, version: str) -> None:
    """Write the list of the gateway and of the packages that the lock file pins beside it."""
    python = _environment(environment, "--requirement", ROOT / "deploy/lock/slim.txt")
    (wheel,) = folder.glob("*.whl")
    _pip(python, "--no-deps", "--no-index", wheel)
    listed = _run([python, "-m", "deploy.sbom", "--python"], {"PYTHONPATH": str(ROOT)})
    (folder / f"gateway-{version}.cdx.json").write_text(listed, "utf-8")


def _image(folder: Path, version: str) -> bool:
    """Build and save the slim image; return whether an engine is there."""
    if (
        shutil.which(DOCKER) is None
        or subprocess.run(  # noqa: S603  # the user's own client
            [DOCKER, "version"], capture_output=True, check=False
        ).returncode
    ):
        return False
    _run(["bash", ROOT / "deploy/images.sh", "slim"])
    archive = folder / f"gateway-{version}-slim.tar"
    _run([DOCKER, "save", "--output", archive, IMAGE])
    with archive.open("rb") as plain, gzip.open(f"{archive}.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    archive.unlink()
    return True


def write_documents(folder: Path, version: str) -> None:
    """Write the documents of the commit as an archive, and beside it the page about installing.

    The links of that page lead into the archive's folder, once it is unpacked there.
    """
    name = f"gateway-{version}-docs"
    archive = folder / f"{name}.tar.gz"
    _run(["git", "archive", "--output", archive, f"--prefix={name}/", "HEAD", *DOCUMENTS])
    page = (ROOT / "docs/install.md").read_text("utf-8")
    (folder / "install.md").write_text(_PAGE_LINK.sub(f"]({name}/docs/", page), "utf-8")


def _sums(folder: Path) -> None:
    """Write the checksums, in the form that `sha256sum --check` reads."""
    lines = [
        f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n"
        for each in sorted(folder.iterdir())
    ]
    (folder / SUMS).write_text("".join(lines), "utf-8")


def _commands(folder: Path, version: str) -> Sequence[str]:
    """Return the commands that publish a clean tree, or what is missing for that."""
    if changed := _run(["git", "-C", ROOT, "status", "--porcelain"]).strip():
        number = len(changed.splitlines())
        return [f"no release: {number} files of the checkout are not committed; commit them first"]
    return [
        "sign and tag with your key:",
        f"  gpg --armor --detach-sign {folder / SUMS}",
        f"  git tag --sign v{version} --message 'gateway {version}'",
        f"  git push origin v{version}",
        "a reader checks with:",
        f"  gpg --verify {SUMS}.asc {SUMS} && sha256sum --check {SUMS}",
    ]


def _environment(folder: Path, *packages: object) -> Path:
    """Make an environment with packages that a lock file pins; return its Python."""
    _run([sys.executable, "-m", "venv", "--without-pip", folder])
    python = folder / "bin/python"
    _pip(python, "--require-hashes", "--only-binary", ":all:", *packages)
    return python


def _pip(python: Path, *words: object) -> None:
    _run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *words])


def _run(command: Sequence[object], variables: Mapping[str, str] | None = None) -> str:
    """Run a command in the checkout and return its output.

    Raises:
        ReleaseError: it failed.
    """
    done = subprocess.run(  # noqa: S603  # our own commands
        [*map(str, command)], cwd=ROOT, env={**os.environ, **(variables or {})},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        shown = " ".join(map(str, command))
        raise ReleaseError(f"{shown}: failed with status {done.returncode}:\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
