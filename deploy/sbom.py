"""Lists the packages of an image as a CycloneDX document, on standard output.

python -m deploy.sbom           in the image; deploy/Dockerfile keeps the result as
                                /usr/share/gateway/sbom.cdx.json
python -m deploy.sbom --python  without the packages of the system, for a wheel

The fields are those of CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/), the package URLs those
of https://github.com/package-url/purl-spec. The document has no time and no random number, so that
the same packages give the same bytes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution, distributions
from urllib.parse import quote

from deploy.spdx import ALLOWED, licence

APPLICATION = "gateway"
Component = dict[str, object]


def main() -> int:
    system = [] if "--python" in sys.argv[1:] else debian_components()
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": python_component(distribution(APPLICATION), "application")},
        "components": [*python_components(), *system],
    }
    json.dump(document, sys.stdout, indent=1)
    return 0


def python_components() -> list[Component]:
    """Return the Python packages without the gateway, by name."""
    found = [each for each in distributions() if canonical_name(each) != APPLICATION]
    return [python_component(each, "library") for each in sorted(found, key=canonical_name)]


def python_component(package: Distribution, kind: str) -> Component:
    name = canonical_name(package)
    url = f"pkg:pypi/{name}@{quote(package.version)}"
    found: Component = {
        "type": kind, "bom-ref": url, "name": name, "version": package.version, "purl": url,
    }  # fmt: skip
    if text := licence(package):
        found["licenses"] = [licence_choice(text)]
    return found


def canonical_name(package: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", package.name).lower()


def licence_choice(text: str) -> dict[str, object]:
    """Return an SPDX expression as such, and any other text as the name of a licence."""
    if ALLOWED.issuperset(re.split(r"[\s()]+(?:AND|OR)[\s()]+", text.strip("() "))):
        return {"expression": text}
    return {"license": {"name": text}}


def debian_components() -> list[Component]:
    """Return the packages of the system; their licences are in /usr/share/doc/NAME/copyright."""
    program = shutil.which("dpkg-query")
    if program is None:
        return []
    done = subprocess.run(  # noqa: S603  # the system's own program
        [program, "--show", "--showformat=${Package}\t${Version}\t${Architecture}\n"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [debian_component(*line.split("\t")) for line in done.stdout.splitlines()]


def debian_component(name: str, version: str, architecture: str) -> Component:
    url = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={architecture}"
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


if __name__ == "__main__":
    sys.exit(main())
