"""Spin searches every run of `docs/models/delivery.pml`, and finds each broken rule."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

MODEL: Final = Path(__file__).parents[2] / "docs" / "models" / "delivery.pml"
TIMEOUT: Final = 1200  # seconds for one program; at most a minute of a quiet core
SPIN: Final = shutil.which("spin")
COMPILER: Final = shutil.which("gcc")

pytestmark = pytest.mark.skipif(
    not (SPIN and COMPILER), reason="no spin or no gcc; deploy/system-packages.sh installs them"
)

CONFIGURATIONS: Final = [
    pytest.param("", id="one-fault"),
    pytest.param("FAULTS=0", id="no-fault"),
    pytest.param("SPOOL=0", id="no-spool"),
    pytest.param("SPOOL=0 FAULTS=2", id="no-spool-two-faults"),
    pytest.param("MESSAGES=1 FAULTS=2", id="one-message-two-faults"),
    pytest.param("REJECTS=0 FAULTS=2", id="two-faults"),  # the largest: 2.7 GB
    pytest.param("IDENTITY=1 REJECTS=0 FAULTS=2", id="identity-two-faults"),
    pytest.param("MESSAGES=1 BOTH=1", id="both-targets"),
]
# A broken rule, with the smallest options that show it: a few need a message id or two faults.
NEEDED: Final = {"NEWER_BEFORE_PUT_BACK": "FAULTS=2", "DROPPED_BEFORE_ROWS": "IDENTITY=1"}
_FLAGS: Final = MODEL.read_text(encoding="utf-8").partition("#define BREAK 0\n#endif\n")[2]
RULES: Final = re.findall(r"^#define ([A-Z_]+) \d+\b", _FLAGS, re.MULTILINE)


def test_two_messages_and_one_fault_have_no_error(tmp_path: Path) -> None:
    assert "errors: 0" in _search(tmp_path, "REJECTS=0")


@pytest.mark.nightly
@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_no_run_has_an_error(options: str, tmp_path: Path) -> None:
    assert "errors: 0" in _search(tmp_path, options)


@pytest.mark.nightly
def test_every_rule_is_reached(tmp_path: Path) -> None:
    unreached = re.findall(r"delivery.pml:\d+, state \d+, (.*)", _search(tmp_path, "IDENTITY=1"))

    assert set(unreached) == {'"-end-"'}  # rules repeat until the run is over


@pytest.mark.nightly
@pytest.mark.parametrize("options", ["", "IDENTITY=1"])
def test_every_run_ends(options: str, tmp_path: Path) -> None:
    assert "errors: 0" in _search(tmp_path, f"MESSAGES=1 {options}", "-DNP", "-l")


@pytest.mark.nightly
@pytest.mark.parametrize("rule", RULES)
def test_a_broken_rule_is_found(rule: str, tmp_path: Path) -> None:
    output = _search(tmp_path, f"BREAK={rule} {NEEDED.get(rule, '')}")

    assert "assertion violated" in output
    assert "errors: 1" in output


def _search(folder: Path, options: str, define: str = "-DSAFETY", argument: str = "-m10000") -> str:
    """The output of the search; fails when it did not search everything or ended at an error."""
    flags = [f"-D{each}" for each in options.split()]
    _run(folder, str(SPIN), *flags, "-a", str(MODEL))
    memory = ["-DNOREDUCE", "-DCOLLAPSE", "-DMEMLIM=3000"]
    _run(folder, str(COMPILER), "-O1", "-w", define, *memory, "-o", "pan", "pan.c")
    output = _run(folder, "./pan", "-m10000", argument)
    assert "max search depth too small" not in output
    assert "memory limit" not in output
    return output


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(  # noqa: S603  # fixed programs, and the model of this project
        command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
