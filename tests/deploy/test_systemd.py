"""The units, checked with systemd's own tools."""

from __future__ import annotations

import os
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
    "gateway-follow.service", "gateway-verify.service", "gateway-verify.timer",
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


@pytest.mark.parametrize("name", ["gateway.service", "gateway-follow.service"])
def test_a_stop_signals_only_the_main_process(name: str) -> None:
    """Java and the converter would otherwise end before the process that waits for them."""
    assert read(name)["Service"]["KillMode"] == "mixed"


def test_the_services_share_user_and_folder() -> None:
    gateway, *others = (read(name)["Service"] for name in SERVICES)

    for other in others:
        for key in ("User", "StateDirectory"):
            assert other[key] == gateway[key]
        assert "GATEWAY_ARCHIVE" in other["ExecStart"]
    assert re.search(r"^u gateway ", (FOLDER / "gateway.sysusers").read_text(), re.MULTILINE)


METRICS = " --metrics /var/cache/gateway/reconcile.prom"


def nightly(folder: Path, cases: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the nightly unit with a program that prints its arguments."""
    text = (FOLDER / "gateway-reconcile.service").read_text().replace("\\\n", " ")
    (script,) = re.findall(r"^ExecStart=/bin/sh -c '(.*)'$", text, re.MULTILINE)
    script = script.replace("$$", "$").replace("%%", "%")  # as systemd expands them
    program = folder / "gateway"
    program.write_text(f'#!/bin/sh\necho "$*"\ncase $1 in {cases} esac\n')
    program.chmod(0o755)
    return subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", script.replace("/opt/gateway/bin/gateway", str(program))],
        capture_output=True, text=True, timeout=60, check=False,
        env={
            "PATH": os.environ["PATH"],
            "GATEWAY_ARCHIVE": "/var/lib/gateway/archive",
            **environment,
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("proven", "compacted", "status"), [(0, 0, 0), (1, 0, 1), (2, 1, 2), (3, 0, 3), (0, 1, 1)]
)
def test_a_day_is_compacted_whatever_the_reconciliation_found(
    tmp_path: Path, proven: int, compacted: int, status: int
) -> None:
    done = nightly(tmp_path, f"reconcile) exit {proven};; *) exit {compacted};;")

    assert done.stdout.splitlines() == [
        f"reconcile /var/lib/gateway/archive{METRICS}",  # without a date: the chain continues
        "archive compact /var/lib/gateway/archive",
    ]
    assert done.returncode == status


def test_both_commands_get_the_key_when_there_is_one(tmp_path: Path) -> None:
    done = nightly(tmp_path, "*) ;;", CREDENTIALS_DIRECTORY="/run/credentials/unit")

    lines = done.stdout.splitlines()
    assert all(" --seal-key=/run/credentials/unit/seal-key" in line for line in lines)


def test_the_metrics_are_written_where_the_unit_may_write() -> None:
    service = read("gateway-reconcile.service")["Service"]

    assert METRICS.strip() in service["ExecStart"]
    assert (service["CacheDirectory"], service["CacheDirectoryMode"]) == ("gateway", "0755")


@pytest.mark.parametrize("name", ["gateway-reconcile.service", "gateway-verify.service"])
def test_the_key_of_the_archive_is_a_credential(units: Path, name: str) -> None:
    drop_in = (FOLDER / f"{name}.d" / "seal-key.conf").read_text()

    assert "LoadCredential=seal-key:/etc/gateway.secrets/seal-key" in drop_in
    done = analyze("verify", "--man=no", units / name)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_archive_of_a_pair_is_one_file_for_each_unit_that_reads_it() -> None:
    name = "GATEWAY_ARCHIVE=/var/lib/gateway/archive"
    others = [each for each in SERVICES if each != "gateway.service"]

    assert all(f"Environment={name}\n" in (FOLDER / each).read_text() for each in others)
    assert len({(FOLDER / f"{each}.d" / "archive.conf").read_text() for each in others}) == 1


def test_an_instance_of_a_pair_has_the_name_of_its_host(units: Path) -> None:
    drop_in = (FOLDER / "gateway.service.d" / "pair.conf").read_text()

    assert {"Environment=GATEWAY_INSTANCE=%H", "ReadWritePaths=/shared"} <= set(drop_in.split("\n"))
    done = analyze("verify", "--man=no", units / "gateway.service")
    assert (done.returncode, done.stderr) == (0, "")
    (units / "gateway.service.d" / "pair.conf").write_text(drop_in.replace("Paths", "Pahts"))
    assert "Pahts" in analyze("verify", "--man=no", units / "gateway.service").stderr
