"""The minimal path outside of the checkout: a wheel, `gateway init`, `gateway run`, a message.

The environment is a new one, in which the wheel stands before the packages of this environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Client
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.nightly, pytest.mark.broker]

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    name: value
    for name, value in os.environ.items()
    if name not in {"PYTHONPATH", "PYTHONSAFEPATH", "VIRTUAL_ENV"}
}


def run(command: Sequence[object], folder: Path, status: int = 0) -> str:
    done = subprocess.run(  # noqa: S603  # our own commands
        [*map(str, command)],
        cwd=folder, env=OUTSIDE, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == status, (command, done.stdout, done.stderr)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and install it; return the programs of its environment."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], folder)
    (wheel,) = folder.glob("gateway-*.whl")
    run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], folder)
    programs = folder / "venv" / "bin"
    run(
        [*pip, "--python", programs / "python", "install", "--no-deps", "--no-index", wheel], folder
    )
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


def test_a_mapping_of_init_runs_outside_of_the_checkout(
    installed: Path, tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    near, far = start_mosquitto(), start_mosquitto()
    folder = tmp_path / "empty"
    folder.mkdir()
    gateway = installed / "gateway"
    where = run([installed / "python", "-c", "import gateway; print(gateway.__file__)"], folder)
    assert Path(where.strip()).is_relative_to(installed.parent)

    addresses = [f"--from-address=127.0.0.1:{near.port}", f"--to-address=127.0.0.1:{far.port}"]
    init = [gateway, "init", "--from", "mqtt", "--to", "mqtt", "--names", "line/{rest...}"]
    run([*init, *addresses], folder)
    mapping = folder / "gateway.yaml"
    page = free_port()
    mapping.write_text(mapping.read_text().replace("web: {}", f"web: {{port: {page}}}"))
    run([gateway, "check", "gateway.yaml"], folder)
    assert run([gateway, "connect", "gateway.yaml"], folder).count("connected to") == 2
    run([gateway, "test", "gateway.yaml"], folder)

    with subprocess.Popen(  # noqa: S603  # our own program
        [gateway, "run", "gateway.yaml"],
        cwd=folder, env=OUTSIDE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            connected = 0
            assert process.stderr is not None
            for line in process.stderr:  # it ends with the process
                connected += "connected" in line
                if connected == 2:
                    break
            with closing(Client(far.port, "#")) as reader, closing(Client(near.port)) as sender:
                sender.publish("line/7", b"21.5")
                reader.wait_for(lambda arrived: any(body == b"21.5" for _, body in arrived))
            assert "mqtt-to-mqtt ready" in run(
                [gateway, "status", "--url", f"http://127.0.0.1:{page}"], folder
            )
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0
