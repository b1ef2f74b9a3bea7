"""The run of the tests themselves: a worker that dies neither stops the run nor hides a test."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CONFTEST = """\
from tests import conftest

conftest.shared_server = lambda file: ""
pytest_xdist_make_scheduler = conftest.pytest_xdist_make_scheduler
pytest_runtest_logreport = conftest.pytest_runtest_logreport
"""
PASSES = "def test_{}(): pass\n"
DIES = "import os\ndef test_{}(): os.abort()\n"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("last_file", "counts"),
    [
        pytest.param(
            PASSES.format(1) + DIES.format(2),
            "1 failed, 5 passed",
            id="at-the-end",
        ),
        pytest.param(
            PASSES.format(1) + DIES.format(2) + PASSES.format(3),
            "1 failed, 6 passed",
            id="before-one-test",
        ),
        pytest.param(DIES.format(1), "1 failed, 4 passed", id="alone"),
        pytest.param(
            DIES.format(1) + PASSES.format(2),
            "1 failed, 5 passed",
            id="at-the-start",
        ),
    ],
)
def test_a_run_ends_after_a_worker_died(tmp_path: Path, last_file: str, counts: str) -> None:
    """Each worker's last file is where xdist's own scheduler waits for ever."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(PASSES.format(1) + PASSES.format(2))
    (tmp_path / "test_z.py").write_text(last_file)

    outside = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile",
         "--no-loadscope-reorder", "--max-worker-restart", "4"],
        cwd=tmp_path, env={**outside, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip

    assert run.returncode == 1, run.stdout
    assert counts in run.stdout
    assert "crashed while running 'test_z.py::test_" in run.stdout.partition("FAILURES")[0]
