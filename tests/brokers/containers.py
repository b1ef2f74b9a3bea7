"""A server of a test in a container: testcontainers starts it on a port of the loopback net."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

pytest.importorskip("testcontainers", reason="testcontainers is not installed")

from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from gateway.endpoints.base import Sink
from gateway.errors import NotConnectedError
from gateway.trial.brokers.listening import free_port
from tests.brokers.servers import Image
from tests.endpoints.docker_images import provide_images

FILES = Path(__file__).parents[1] / "deploy/brokers"
LOOPBACK = "127.0.0.1"
START_TIMEOUT = 180.0  # seconds; PubSub+ takes a minute or two
STOP_TIMEOUT = 20  # seconds until the engine kills


class ServerContainer:
    """A container that runs; what it stored survives `stop` and `kill`. Mutable."""

    def __init__(self, container: DockerContainer, port: int) -> None:
        self.port, self._container = port, container

    def stop(self) -> None:
        self._container.get_wrapped_container().stop(timeout=STOP_TIMEOUT)

    def kill(self) -> None:
        self._container.get_wrapped_container().kill()

    def start(self) -> None:
        self._container.get_wrapped_container().start()

    def freeze(self) -> None:
        self._container.get_wrapped_container().pause()

    def thaw(self) -> None:
        self._container.get_wrapped_container().unpause()

    @property
    def is_running(self) -> bool:
        found = self._container.get_wrapped_container()
        found.reload()
        return bool(found.status == "running")

    @property
    def log(self) -> str:
        return "".join(part.decode(errors="replace") for part in self._container.get_logs())


def pulled(row: Image) -> str:
    """Return the image of a row, which the engine has then; skip the test where it cannot."""
    if not _engine_answers():
        pytest.skip(f"no Docker engine answers: the image {row.image} cannot be started")
    provide_images(lambda: DockerClient().client.images, row.image)
    return row.image


def _engine_answers() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    return not subprocess.run([docker, "version"], capture_output=True, check=False).returncode  # noqa: S603


def wait_until_it_serves(sink: Sink, container: ServerContainer) -> None:
    """Wait until the server takes a connection; a failure shows its log."""
    deadline, pause = monotonic() + START_TIMEOUT, Event()
    while monotonic() < deadline and container.is_running:
        with suppress(NotConnectedError):
            sink.open()
            sink.close()
            return
        pause.wait(0.2)
    pytest.fail(f"the server does not start: {container.log}")


@contextmanager
def serving(row: Image, image: str) -> Iterator[ServerContainer]:
    """Run `image`, which the engine has, as a server of the row; remove it at the end."""
    # The helper that removes what a killed run left is an image too, and not always to be had.
    testcontainers_config.ryuk_disabled = True
    port = free_port()
    container = DockerContainer(image)
    container.ports[str(row.port)] = (LOOPBACK, port)  # type: ignore[assignment]  # docker-py takes it
    for name, value in row.variables(port).items():
        container.with_env(name, value)
    for name, place in row.files:
        container.with_volume_mapping(FILES / name, place)
    if row.command:
        container.with_command(row.command)
    container.with_kwargs(shm_size=row.shared_memory)
    with container:
        yield ServerContainer(container, port)
