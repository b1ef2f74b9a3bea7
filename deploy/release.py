"""Prepares a release: its version at every place, and its date in the changelog.

python -m deploy.release 0.2.0        then commit, and `make release`

`gateway.__version__` is the version; pyproject.toml, the wheel and `gateway --version` read it. The
chart, the names of the images and the documents repeat it, and a test compares them.
"""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = "gateway/__init__.py"
PLACES: Final = (
    SOURCE,
    "deploy/helm/gateway/Chart.yaml",
    "deploy/helm/gateway/values.yaml",
    "deploy/kubernetes/overlays/production/kustomization.yaml",
    "docs/deployment.md",
    "docs/install.md",
    "tests/deploy/systemd/Dockerfile",
    "tests/deploy/test_systemd_run.py",
)
CHANGELOG: Final = "CHANGELOG.md"
_UNRELEASED: Final = "## Unreleased\n"
_VERSION: Final = re.compile(r'^__version__ = "([0-9]+\.[0-9]+\.[0-9]+)"$', re.MULTILINE)
_FORM: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+", re.ASCII)


class ReleaseError(Exception):
    """A release that cannot be prepared."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Prepare a release.")
    parser.add_argument("version", help="such as 0.2.0")
    version: str = parser.parse_args().version
    try:
        prepare(ROOT, version, datetime.now(UTC).date())
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 2
    print("run `make manifests` and `make check`, commit, then `make release`")
    return 0


def current(root: Path) -> str:
    """Return the version in the source below `root`.

    Raises:
        ReleaseError: there is none.
    """
    found = _VERSION.search((root / SOURCE).read_text("utf-8"))
    if found is None:
        raise ReleaseError(f"{SOURCE}: no __version__")
    return found[1]


def prepare(root: Path, version: str, day: date) -> None:
    """Write `version` at every place below `root`, and close the changelog's section with `day`.

    Raises:
        ReleaseError: the version is not greater, or nothing is unreleased; no file was changed.
    """
    old = current(root)
    if _FORM.fullmatch(version) is None or _parts(version) <= _parts(old):
        raise ReleaseError(f"{version!r} is no version after {old}; write MAJOR.MINOR.PATCH")
    changes = (root / CHANGELOG).read_text("utf-8")
    if _UNRELEASED not in changes:
        raise ReleaseError(f"{CHANGELOG}: no section {_UNRELEASED.strip()!r}")
    closed = changes.replace(_UNRELEASED, f"{_UNRELEASED}\n## {version} ({day})\n", 1)
    (root / CHANGELOG).write_text(closed, "utf-8")
    for place in PLACES:
        path = root / place
        path.write_text(path.read_text("utf-8").replace(old, version), "utf-8")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    sys.exit(main())
