"""Signals that reach `gateway run` before it is up."""

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

def hung_up(self):
    os.kill(os.getpid(), signal.SIGHUP)
    start(self)

Gateway.start = hung_up
sys.exit(main(sys.argv[1:]))
"""


def test_a_hangup_while_it_starts_is_a_reload_and_not_its_end(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(ONE_ROUTE)
    command = [sys.executable, "-c", PROGRAM, "run", str(config), "--log-format", "json"]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        said = next((line for line in process.stderr if '"reloaded"' in line), "it ended")
        process.terminate()
        process.stderr.read()
        status = process.wait(PATIENCE)

    assert '"reloaded"' in said
    assert status == 0
