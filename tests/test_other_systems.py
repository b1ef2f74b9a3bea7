"""Systems on which the tests do not run: macOS without the names of Linux, and Windows.

They stand in as a Python from which these names were taken away.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE, until

MACOS = """
import os, select, signal, socket, sys, time
for module, names in {
    time: ["CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW_APPROX", "CLOCK_TAI"],
    os: ["fdatasync", "memfd_create", "O_TMPFILE", "O_DIRECT", "eventfd", "pidfd_open", "splice",
         "copy_file_range", "posix_fadvise", "posix_fallocate", "sched_getaffinity",
         "sched_setaffinity", "sched_setscheduler", "getrandom", "setns", "unshare", "getresuid"],
    select: ["epoll"],
    socket: ["TCP_USER_TIMEOUT", "TCP_QUICKACK", "TCP_CORK", "SO_BINDTODEVICE", "AF_VSOCK"],
    signal: ["sigtimedwait", "sigwaitinfo", "SIGRTMIN", "SIGRTMAX", "SIGPWR", "SIGSTKFLT"],
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""
WINDOWS = """
import os, signal, sys, time
for name in ("fcntl", "resource", "grp", "pwd", "termios"):
    sys.modules.pop(name, None)
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "resource", "grp", "pwd", "termios"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
for module, names in {
    time: ["CLOCK_BOOTTIME", "CLOCK_MONOTONIC", "clock_gettime", "clock_gettime_ns"],
    os: ["fdatasync", "memfd_create", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY"],
    signal: ["SIGHUP", "SIGUSR1", "SIGUSR2"],
}.items():
    for name in names:
        delattr(module, name)
"""
RUN = "from gateway.cli import main\nraise SystemExit(main(sys.argv[1:]))\n"
MAPPING = """\
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: plant}
  erp: {kind: memory, dialect: ems, broker: erp}
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: erp, template: "ORDERS.{rest...}", on_too_long: shorten}
    heartbeat: orders/beat
gateway: {heartbeat_seconds: 1}
archive: {path: archive}
spool: {path: spool}
web: {port: 0}
tests:
  a name crosses:
    given: {endpoint: plant, name: orders/1}
    expect: [{endpoint: erp, name: ORDERS.1}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gateway.yaml").write_text(MAPPING)
    return tmp_path


def command(names: str, folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start a command in a Python without these names."""
    return subprocess.Popen(  # noqa: S603  # this Python
        [sys.executable, "-c", names + RUN, *words],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


def beats(archive: Path) -> bool:
    """Return whether a row of a heartbeat is on disk."""
    return any(b"ORDERS.beat" in file.read_bytes() for file in archive.rglob("*.open"))


def test_the_gateway_runs_on_macos(folder: Path) -> None:
    with command(MACOS, folder, "run", "gateway.yaml", "--log-format", "text") as process:
        until(lambda: process.poll() is not None or beats(folder / "archive"))
        process.terminate()
        _, lines = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, lines
    assert "Traceback" not in lines
    assert list((folder / "archive").rglob("*.parquet")), lines


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["check", "gateway.yaml"], id="check"),
        pytest.param(["test", "gateway.yaml"], id="test"),
        pytest.param(["explain", "orders/1", "--config", "gateway.yaml"], id="explain"),
        pytest.param(["translate", "a/b", "--from", "mqtt", "--to", "ems"], id="translate"),
        pytest.param(["names"], id="names"),
    ],
)
def test_names_and_mappings_are_checked_on_windows(words: list[str], folder: Path) -> None:
    process = command(WINDOWS, folder, *words)
    out, error = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, out + error


@pytest.mark.parametrize("words", [["run", "gateway.yaml"], ["try"], ["dead-letters", "list", "x"]])
def test_windows_is_pointed_to_the_image(words: list[str], folder: Path) -> None:
    process = command(WINDOWS, folder, *words)
    _, error = process.communicate(timeout=PATIENCE)

    assert process.returncode == 2
    assert error == (
        "gateway: this command needs Linux or macOS; on Windows run the image gateway:slim"
        " (docker run gateway:slim COMMAND); names, check, test and explain run here\n"
    )
