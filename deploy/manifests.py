"""Renders deploy/kubernetes/base from the chart in deploy/helm/gateway, which is the one source.

python -m deploy.manifests            write the files of the base
python -m deploy.manifests --check    exit status 1 if one of them is outdated

Kustomize makes the config maps of the base and sets the names of its images.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import helm_python

FOLDER = Path(__file__).parent
CHART = FOLDER / "helm" / "gateway"
BASE = FOLDER / "kubernetes" / "base"
BASE_VALUES = {
    "name": "app",
    "images": {"gateway": "gateway-slim", "reconcile": "gateway-spark"},
    "settings": {"existing": "gateway-settings", "environmentFrom": "gateway-hosts"},
}
OF_HELM = re.compile(r"^ *(app\.kubernetes\.io/managed-by|helm\.sh/[-a-z]+):.*\n", re.MULTILINE)
HEAD = "# Rendered from deploy/helm/gateway by `make manifests`; change the chart instead.\n"


def main() -> int:
    outdated = False
    for name, text in base().items():
        path = BASE / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            outdated = True
            print(f"{path.name} is outdated; run `make manifests`", file=sys.stderr)
    return int(outdated)


def base() -> dict[str, str]:
    """Return the manifests of the base by file name."""
    found = rendered(BASE_VALUES)
    return {
        name: HEAD + OF_HELM.sub("", text) for name, text in found.items() if name.endswith(".yaml")
    }


def rendered(values: Mapping[str, object], release: str = "gateway") -> dict[str, str]:
    """Return the texts of the chart's templates by file name, without empty ones.

    Raises:
        helm_python.HelmError: the values violate values.schema.json, or a template fails.
    """
    with helm_python.Chart.load(str(CHART)) as chart:
        chart.validate_schema(dict(values))
        texts = chart.render(dict(values), name=release, namespace="default")
    stripped = {path.rpartition("/")[2]: text.strip() for path, text in texts.items()}
    return {name: text + "\n" for name, text in stripped.items() if text}


if __name__ == "__main__":
    sys.exit(main())
