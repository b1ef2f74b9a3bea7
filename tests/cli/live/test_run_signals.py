"""Signals during the start of `gateway run`."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gateway.lease.file_store import FileLeaseStore
from tests.runtime.one_route import ONE_ROUTE
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
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


LOADING = """\
import os, runpy, signal, sys

class Hangup:
    "Sends the signals when the first module of the command is about to be loaded."

    def find_spec(self, name, path, target=None):
        if name == "gateway.cli":
            sys.meta_path.remove(self)
            for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                os.kill(os.getpid(), number)

sys.meta_path.insert(0, Hangup())
runpy.run_module("gateway", run_name="__main__", alter_sys=True)
"""
HANGUPS = """\
import logging, os, signal, sys
from pathlib import Path
from gateway.cli import main
from gateway.cli.live import run

class Editor(logging.Handler):
    "Writes the wrong configuration at the start, and stops the gateway after the reload."

    def emit(self, record):
        if record.getMessage() == "running":
            path = Path(sys.argv[2])
            path.write_text(path.read_text() + "web: {port: 0x" + "f" * 4000 + "}")
            os.kill(os.getpid(), signal.SIGHUP)
        elif record.getMessage().startswith("reload"):
            os.kill(os.getpid(), signal.SIGTERM)

run.log.addHandler(Editor())
sys.exit(main(sys.argv[1:]))
"""
LOST_THREAD = """\
import sys
from gateway.cli import main
from gateway.runtime.outbound.lane import Lane

def fail(self):
    raise OSError("a fault of a thread")

Lane._run = fail
sys.exit(main(sys.argv[1:]))
"""
FAULT = """\
import gateway.cli.live.run as run
load = run.load_proven

def load_once(path):
    run.load_proven = broken
    return load(path)

def broken(path):
    raise ZeroDivisionError("a fault of the loader")

run.load_proven = load_once
"""


@pytest.mark.parametrize(
    ("fault", "logged"), [("", "expected a whole number"), (FAULT, "Traceback")]
)
def test_a_wrong_configuration_does_not_end_the_gateway(
    tmp_path: Path, fault: str, logged: str
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(ONE_ROUTE)
    command = [sys.executable, "-c", fault + HANGUPS, "run", str(config), "--log-format", "json"]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert '"reload' in done.stderr
    assert logged in done.stderr
    assert '"stopped"' in done.stderr
    assert done.returncode == 0


def test_a_hangup_while_the_modules_load_is_ignored(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADING, "run", str(tmp_path / "absent.yaml")]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert (done.returncode, "absent.yaml" in done.stderr) == (1, True), done


def test_a_hangup_ends_a_command_that_handles_none() -> None:
    command = [sys.executable, "-c", LOADING, "names"]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)  # noqa: S603

    assert done.returncode == -signal.SIGHUP


def test_the_installed_command_begins_where_the_module_does() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert scripts == {"gateway": "gateway.__main__:main"}


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


def test_a_thread_that_an_error_ends_ends_the_process(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(ONE_ROUTE)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", LOST_THREAD, "run", str(config)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    assert "a fault of a thread" in done.stderr


STOP_WITH_LEASE = """\
import os, signal, sys
from gateway.cli import main
from gateway.lease.holder import LeaseHolder

note = LeaseHolder._note_role

def note_and_stop(self):
    note(self)
    if self.holds():
        os.kill(os.getpid(), signal.SIGTERM)
        LeaseHolder._note_role = note

LeaseHolder._note_role = note_and_stop
sys.exit(main(sys.argv[1:]))
"""


def test_a_stop_at_the_moment_of_the_lease_stops(tmp_path: Path) -> None:
    config, lease = tmp_path / "gateway.yaml", tmp_path / "lease"
    standby = f"standby: {{lease: {{kind: file, path: {lease}}}}}\n"
    config.write_text(ONE_ROUTE.replace("name: test", "name: test, instance: a") + standby)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", STOP_WITH_LEASE, "run", str(config)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert FileLeaseStore(lease).look().given


LOSE_AT_ONCE = """\
import sys
from gateway.cli import main
from gateway.lease.holder import LeaseHolder

note = LeaseHolder._note_role

def lose_and_note(self):
    if self.holds():
        self._lease._lose()
    note(self)

LeaseHolder._note_role = lose_and_note
sys.exit(main(sys.argv[1:]))
"""


def test_a_standby_whose_lease_is_lost_before_it_starts_ends(tmp_path: Path) -> None:
    """It takes no other one, so its supervisor has to start it again."""
    config = tmp_path / "gateway.yaml"
    standby = f"standby: {{lease: {{kind: file, path: {tmp_path / 'lease'}}}}}\n"
    config.write_text(ONE_ROUTE.replace("name: test", "name: test, instance: a") + standby)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", LOSE_AT_ONCE, "run", str(config)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "the lease is lost" in done.stderr
    assert "running" not in done.stderr
