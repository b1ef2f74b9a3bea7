"""`gateway files DIR`: write the files that come with the gateway: units, rules, mappings.

They are the units of systemd, the Helm chart, the same for kustomize, the rules and dashboards of
Prometheus and Grafana, the lock files of the packages, `spark-submit.sh`, and a mapping for each
pair of systems. DIR is a new or empty folder.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Final

import gateway
from gateway.cli.parsers import CommandParser
from gateway.errors import GatewayError
from gateway.terminal.text import print_line

PACKAGE: Final = Path(gateway.__file__).parent
FILES: Final = (  # as in a checkout; pyproject.toml names them for the wheel
    "deploy/systemd",
    "deploy/lock",
    "deploy/grafana-dashboard.json",
    "deploy/grafana-fleet.json",
    "deploy/grafana-nights.json",
    "deploy/prometheus-alerts.yaml",
    "deploy/prometheus.yaml",
    "deploy/helm",
    "deploy/kubernetes",
    "deploy/spark-submit.sh",
    "mappings",
)


def add_options(parser: CommandParser) -> None:
    parser.add("DIR", "folder for the files, which is absent or empty")


def run(args: argparse.Namespace) -> int:
    """Write the files; exit status 0.

    Raises:
        GatewayError: the folder has files already, or cannot be written.
    """
    folder: Path = args.dir
    inside = PACKAGE / "files"  # of a wheel
    origin = inside if inside.is_dir() else PACKAGE.parent
    try:
        if folder.exists() and any(folder.iterdir()):
            raise GatewayError(f"{folder}: has files already; name a new folder")
        for name in FILES:
            path, copy = origin / name, folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
    except OSError as error:
        raise GatewayError(f"{folder}: cannot write the files: {error}") from error
    for name in FILES:
        print_line(str(folder / name))
    return 0
