"""Signals during the start of `gateway run`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.runtime.one_route import ONE_ROUTE
from tests.waiting import PATIENCE

PROGRAM = """\
import os, signal, sys
from gateway.cli import main
from gateway.runtime.gateway import Gateway

start = Gateway.start

def start_with_hangup(self):
    os.kill(os.getpid(), signal.SIGHUP)
    start(self)

Gateway.start = start_with_hangup
sys.exit(main(sys.argv[1:]))
"""


def test_a_hangup_during_the_start_reloads(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(ONE_ROUTE)
    command = [sys.executable, "-c", PROGRAM, "run", str(config), "--log-format", "json"]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        line = next((each for each in process.stderr if '"reloaded"' in each), "the process ended")
        process.terminate()
        process.stderr.read()
        status = process.wait(PATIENCE)

    assert '"reloaded"' in line
    assert status == 0
