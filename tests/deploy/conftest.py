"""Images for the tests of this folder, built once in a run by a Docker engine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deploy.container import network, volume
from tests.deploy.engine import BUILD_TIMEOUT, ROOT, START, Engine, base_image, running_engine

BROKERS = Path(__file__).parent / "brokers"
GATEWAY_UID = 10001

Image = Callable[[str], str]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def base(engine: Engine) -> str:
    return base_image(engine)


@pytest.fixture(scope="session")
def gateway_image(engine: Engine, base: str) -> Image:
    """Return a function that builds `slim`, `jvm` or `spark` with the script of `make images`.

    Without permission to start an engine, it builds an image only again: the first takes minutes.
    """

    def build(target: str) -> str:
        name = f"gateway:{target}"
        if os.environ.get(START) != "start" and engine.call("inspect", name).returncode:
            pytest.skip(f"the image {name} is not built; `make images` builds it")
        done = subprocess.run(  # noqa: S603
            [ROOT / "deploy" / "images.sh", target],
            env={**engine.environment, "DOCKER": engine.program, "BASE": base},
            capture_output=True, text=True, timeout=BUILD_TIMEOUT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return name

    return build


@pytest.fixture(scope="session")
def slim(gateway_image: Image) -> str:
    return gateway_image("slim")


@pytest.fixture(scope="session")
def mosquitto_image(engine: Engine, base: str) -> str:
    return engine.build(BROKERS, "mosquitto", "gateway-test-mosquitto", base)


@pytest.fixture(scope="session")
def activemq_image(engine: Engine, base: str) -> str:
    return engine.build(BROKERS, "activemq", "gateway-test-activemq", base)


@pytest.fixture
def net(engine: Engine) -> Iterator[str]:
    """A network of its own."""
    with network(engine) as name:
        yield name


@pytest.fixture
def state(engine: Engine) -> Iterator[str]:
    """A volume for the archive and the spool."""
    with volume(engine) as name:
        yield name


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The folder of the configuration, which the user of the image can read."""
    folder = tmp_path / "settings"
    folder.mkdir(mode=0o755)
    return folder
