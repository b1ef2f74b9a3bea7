"""Lists the licences of the gateway's dependencies, and refuses licences that are not allowed.

python -m deploy.licences            write docs/licences.md
python -m deploy.licences --check    exit status 1 if it is outdated or a licence is not allowed
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Collection
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.spdx import ALLOWED, licence, metadata_field

DOCUMENT = Path(__file__).parents[1] / "docs" / "licences.md"
PROJECT = DOCUMENT.parents[1] / "pyproject.toml"
HEAD = """\
# Licences

The packages of an installation with all extras; the gateway itself is under Apache-2.0.
`make licences` writes this file. `make check` fails when a package is missing here, or has a
licence that `deploy/spdx.py` does not allow. Versions are in `deploy/lock/`.

| package | licence | description |
|---|---|---|
"""


def main() -> int:
    names = sorted(closure(["all"]))
    lines = [_row(distribution(name)) for name in names]
    text = HEAD + "\n".join(lines) + "\n"
    refused = [name for name in names if not allowed(licence(distribution(name)))]
    for name in refused:
        print(f"{name}: licence {licence(distribution(name))!r} is not allowed", file=sys.stderr)
    if "--check" not in sys.argv:
        DOCUMENT.write_text(text, encoding="utf-8")
    elif DOCUMENT.read_text(encoding="utf-8") != text:
        print(f"{DOCUMENT.name} is outdated; run `make licences`", file=sys.stderr)
        return 1
    return int(bool(refused))


def closure(extras: Collection[str]) -> set[str]:
    """Return the names of all packages that `gateway[extras]` needs, without the gateway.

    Raises:
        PackageNotFoundError: a package is not installed.
    """
    found: set[tuple[str, str]] = set()
    pending = [("gateway", extra) for extra in ("", *extras)]
    while pending:
        each = pending.pop()
        if each not in found:
            found.add(each)
            pending += _needed(*each)
    return {name for name, _ in found} - {"gateway"}


def _needed(name: str, extra: str) -> list[tuple[str, str]]:
    """Return what a package needs; the gateway by its project file, which an installation lags."""
    if name == "gateway":
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
        texts = project["optional-dependencies"][extra] if extra else project["dependencies"]
    else:
        texts = distribution(name).requires or ()
    needed: list[tuple[str, str]] = []
    for text in texts:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            other = canonicalize_name(requirement.name)
            needed += [(other, each) for each in ("", *requirement.extras)]
    return needed


def allowed(expression: str) -> bool:
    """Return whether an SPDX expression needs no licence outside ALLOWED.

    One alternative of an OR is enough; every part of an AND must be allowed.
    """
    plain = expression.replace("(", " ").replace(")", " ")
    return all(
        any(name.strip() in ALLOWED for name in re.split(r"\s+OR\s+", part))
        for part in re.split(r"\s+AND\s+", plain)
    )


def _row(package: Distribution) -> str:
    summary = metadata_field(package, "Summary").replace("|", "/")
    return f"| {canonicalize_name(package.name)} | {licence(package)} | {summary} |"


if __name__ == "__main__":
    sys.exit(main())
