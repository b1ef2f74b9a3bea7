"""A Docker engine for tests: the one that runs, or one that they start as root and end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.brokers.servers import SUITE
from tests.waiting import PATIENCE, until

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / ".images"  # layers that a later run uses again; `make clean` removes them
START: Final = "GATEWAY_TEST_ENGINE"  # variable; `start` permits the tests to start an engine
BASE: Final = "GATEWAY_TEST_BASE"  # variable; the base image of the tests
BUILD_TIMEOUT: Final = 3000  # seconds
BUILT_IN_BUILDKIT: Final = 23  # first major version of the client that has it as a plug-in


class Engine:
    """The commands of a client; `host` is the engine's address, None for the client's default."""

    def __init__(self, program: str, host: str | None) -> None:
        self.program = program
        self.environment = dict(os.environ)
        if host is not None:
            self.environment["DOCKER_HOST"] = host
        if self.call("buildx", "version").returncode:
            version = self.call("version", "--format", "{{.Client.Version}}").stdout
            older = int(version.partition(".")[0] or BUILT_IN_BUILDKIT) < BUILT_IN_BUILDKIT
            self.environment["DOCKER_BUILDKIT"] = str(int(older))

    def call(
        self,
        *arguments: str | Path,
        timeout: float = PATIENCE,
        variables: Mapping[str, str] | None = None,
        program: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the client, or of another program; return its result."""
        return subprocess.run(  # noqa: S603
            [program or self.program, *map(str, arguments)],
            env={**self.environment, **(variables or {})},
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def run(self, *arguments: str | Path, timeout: float = PATIENCE) -> str:
        """Run a command of the client and return what it prints.

        Raises:
            AssertionError: the exit status is not 0.
        """
        done = self.call(*arguments, timeout=timeout)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout.strip()

    def build(self, folder: Path, target: str, name: str, base: str) -> str:
        """Build the stage `target` of the Dockerfile in `folder`; return the image's name."""
        self.run(
            "build", "--quiet", "--build-arg", f"BASE={base}", "--target", target, "--tag", name,
            folder, timeout=BUILD_TIMEOUT,
        )  # fmt: skip
        return name

    def answers(self) -> bool:
        return self.call("version").returncode == 0


@contextmanager
def running_engine() -> Iterator[Engine]:
    """Use the engine that answers, or start one where that is permitted; otherwise skip."""
    program = client()
    engine = Engine(program, None)
    if engine.answers():
        yield engine
        return
    if os.environ.get(START) != "start":
        pytest.skip("no Docker engine answers; `make test-images`, as root, starts one")
    daemon = shutil.which("dockerd")
    if os.geteuid() != 0 or daemon is None:
        pytest.skip("no Docker engine answers, and starting one needs root and dockerd")
    with started_engine(program, daemon) as engine:
        yield engine


def client() -> str:
    """Return the client that can use BuildKit, if there are several; skip without one."""
    found = [each for each in (shutil.which("docker"), "/usr/bin/docker") if each]
    found = [each for each in found if Path(each).exists()]
    if not found:
        pytest.skip("no Docker client is installed")
    with_buildkit = [
        each for each in found if Engine(each, None).environment.get("DOCKER_BUILDKIT") != "0"
    ]
    return [*with_buildkit, *found][0]


@contextmanager
def started_engine(program: str, daemon: str) -> Iterator[Engine]:
    """Start an engine with its own socket; it ends with the test, and with this process."""
    with tempfile.TemporaryDirectory(prefix="gw-engine-", ignore_cleanup_errors=True) as folder:
        host = f"unix://{folder}/socket"
        log = Path(folder) / "log"
        with log.open("w") as output:
            process = subprocess.Popen(  # noqa: S603
                ["setpriv", "--pdeathsig", "TERM", daemon, "--host", host,  # noqa: S607
                 "--data-root", DATA, "--exec-root", f"{folder}/exec",
                 "--pidfile", f"{folder}/pid"],
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            engine = Engine(program, host)
            until(lambda: process.poll() is not None or engine.answers(), "no engine")
            if process.poll() is not None:
                pytest.skip(f"the Docker engine does not start: {log.read_text()[-500:]}")
            yield engine
            remove_containers(engine)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def remove_containers(engine: Engine) -> None:
    """Remove what a test that was interrupted left."""
    if left := engine.run("ps", "--all", "--quiet").split():
        engine.run("rm", "--force", "--volumes", *left)


def base_image(engine: Engine) -> str:
    """Return the base of the tests' images: a given one, Debian's, or one of Debian's packages."""
    suite = os.environ.get(SUITE, "bookworm")
    own, published = f"gateway-base:{suite}", f"debian:{suite}-slim"
    if given := os.environ.get(BASE):
        return given
    for name in (own, published):
        if engine.call("image", "inspect", name).returncode == 0:
            return name
    if engine.call("pull", "--quiet", published, timeout=600).returncode == 0:
        return published
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("no base image can be pulled, and making one needs root and debootstrap")
    done = subprocess.run(  # noqa: S603
        [ROOT / "deploy" / "base-image.sh", own, suite],
        env={**engine.environment, "DOCKER": engine.program},
        capture_output=True, text=True, timeout=BUILD_TIMEOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return own
