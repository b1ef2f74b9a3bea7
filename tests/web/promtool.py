"""Promtool, and the rules of the alerts that it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parents[2]
ALERTS: Final = ROOT / "deploy" / "prometheus-alerts.yaml"
SEARCH_PATH: Final = os.pathsep.join((os.environ.get("PATH", os.defpath), sys.prefix + "/bin"))
PROMTOOL: Final = shutil.which("promtool", path=SEARCH_PATH)


def rules() -> list[dict[str, Any]]:
    return [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]


def map_seconds(text: str) -> float:
    return float(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def promtool(*arguments: str) -> None:
    """Run the checker of Prometheus, and expect that it finds no fault."""
    done = subprocess.run(  # noqa: S603  # a program the machine has
        [str(PROMTOOL), *arguments],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def write_test(file: Path, text: str) -> None:
    """Write a test of promtool with the rules of its alerts, and the annotations of each alert.

    Promtool evaluates every rule that it gets, for days.
    """
    world = yaml.safe_load(text)
    cases = [case for test in world["tests"] for case in test["alert_rule_test"]]
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    for group in groups:
        named = {case["alertname"] for case in cases}
        group["rules"] = [each for each in group["rules"] if each["alert"] in named]
    alerts = file.with_name("alerts.yaml")
    alerts.write_text(yaml.safe_dump({"groups": groups}))
    world["rule_files"] = [str(alerts)]
    common = {
        each["alert"]: {k: v for k, v in each["annotations"].items() if k != "summary"}
        for each in rules()
    }
    for case in cases:
        for alert in case["exp_alerts"]:
            alert["exp_annotations"] |= common[case["alertname"]]
    file.write_text(yaml.safe_dump(world))
