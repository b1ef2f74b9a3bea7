"""The units, checked with systemd's own tools."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
UNITS = [
    "gateway.service", "gateway-reconcile.service", "gateway-reconcile.timer",
    "gateway-follow.service",
]  # fmt: skip
SERVICES = [name for name in UNITS if name.endswith(".service")]
MAX_EXPOSURE = 15  # tenths, of 100, as systemd-analyze security computes it


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run(  # noqa: S603
        [program, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Copies of the units, with a program that exists on this machine."""
    program = tmp_path / "gateway"
    program.write_text(f"#!{sys.executable}\n")
    program.chmod(0o755)
    folder = tmp_path / "units"
    shutil.copytree(FOLDER, folder)
    for name in UNITS:
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("/opt/gateway/bin/gateway", str(program)))
    return folder


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_has_no_findings(units: Path, name: str) -> None:
    done = analyze("verify", "--man=no", units / name)

    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_detects_a_mistake(units: Path) -> None:
    unit = units / "gateway.service"
    unit.write_text(unit.read_text().replace("ProtectSystem", "ProtectSistem"))

    assert "'ProtectSistem'" in analyze("verify", "--man=no", unit).stderr


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_little_exposure(units: Path, name: str) -> None:
    done = analyze(
        "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", "--no-pager", units / name
    )

    assert done.returncode == 0, done.stdout[-500:]


def read(name: str) -> RawConfigParser:
    parser = RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation says
    parser.read(FOLDER / name)
    return parser


def test_a_hangup_reloads_and_a_stop_has_time() -> None:
    service = read("gateway.service")["Service"]

    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert int(service["TimeoutStopSec"]) > 20
    assert service["StateDirectory"] == "gateway"


def test_the_services_share_user_and_folder() -> None:
    gateway, *others = (read(name)["Service"] for name in SERVICES)

    for other in others:
        for key in ("User", "StateDirectory"):
            assert other[key] == gateway[key]
        assert "/var/lib/gateway/archive" in other["ExecStart"]
    assert re.search(r"^u gateway ", (FOLDER / "gateway.sysusers").read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("proven", "compacted", "status"), [(0, 0, 0), (1, 0, 1), (2, 1, 2), (0, 1, 1)]
)
def test_a_day_is_compacted_whatever_the_reconciliation_found(
    tmp_path: Path, proven: int, compacted: int, status: int
) -> None:
    text = (FOLDER / "gateway-reconcile.service").read_text().replace("\\\n", " ")
    (script,) = re.findall(r"^ExecStart=/bin/sh -c '(.*)'$", text, re.MULTILINE)
    script = script.replace("$$", "$").replace("%%", "%")  # as systemd expands them
    program = tmp_path / "gateway"
    case = f"case $1 in reconcile) exit {proven};; *) exit {compacted};; esac"
    program.write_text(f'#!/bin/sh\necho "$*"\n{case}\n')
    program.chmod(0o755)

    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", script.replace("/opt/gateway/bin/gateway", str(program))],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    first, second = done.stdout.splitlines()
    assert first.startswith("reconcile /var/lib/gateway/archive --date 20")
    assert second == first.replace("reconcile", "archive compact")
    assert done.returncode == status
