"""The wall around the bridge: `gateway run` loads nothing of the other houses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.runtime.one_route import ONE_ROUTE
from tests.waiting import PATIENCE

SECTIONS = """\
archive: {path: archive, segment_seconds: 1}
spool: {path: spool}
web: {port: 0}
"""
PROGRAM = """\
import logging, os, signal, sys
from gateway.cli import main
from gateway.cli.live import run

class Stop(logging.Handler):
    "Stops the gateway when it runs."

    def emit(self, record):
        if record.getMessage() == "running":
            os.kill(os.getpid(), signal.SIGTERM)

run.log.addHandler(Stop())
status = main(["run", "gateway.yaml"])
houses = tuple("gateway." + name for name in ("imports", "night", "trial"))
loaded = [each for each in sys.modules if each.startswith("gateway.")]
print("gateway.runtime.gateway" in loaded, [each for each in loaded if each.startswith(houses)])
sys.exit(status)
"""


def test_a_gateway_loads_no_module_of_another_house(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(ONE_ROUTE + SECTIONS)
    done = subprocess.run(  # noqa: S603  # this Python
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env={"PYTHONPATH": str(Path.cwd())},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, "True []\n"), done.stderr
