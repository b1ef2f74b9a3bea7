"""A bridge of mosquitto is replaced by five commands: import, check, run, status, reconcile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.brokers import servers
from tests.own_network import own_network

pytestmark = [pytest.mark.broker, pytest.mark.spark]
ROOT = Path(__file__).parents[2]
LIMIT = 280  # seconds; the reconciliation starts Spark


def refused() -> str:
    """Return why the story cannot run on this machine; empty when it can."""
    return servers.missing("mosquitto") or ("" if own_network() else "no network namespaces")


@pytest.mark.nightly
def test_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    if reason := refused():
        pytest.skip(reason)

    done = subprocess.run(  # noqa: S603
        (*own_network(), sys.executable, "-m", "tests.brokers.import_story"),
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: clean" in done.stdout
    assert "delivered 4\n" in done.stdout
