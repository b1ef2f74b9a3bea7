"""Docker images for tests: pull the missing ones, or skip the test with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pytest
from docker.errors import DockerException, ImageNotFound


class Images(Protocol):
    """The part of `docker.models.images.ImageCollection` that tests need."""

    def get(self, name: str, /) -> object: ...
    def pull(self, repository: str, /) -> object: ...


def provide_images(images: Callable[[], Images], *names: str) -> None:
    """Make the named images available; skip the test when an image cannot be pulled."""
    for name in names:
        try:
            _provide(images(), name)
        except (DockerException, OSError) as error:  # OSError: errors of the HTTP client
            pytest.skip(f"the image {name} cannot be pulled: {error}")


def _provide(images: Images, name: str) -> None:
    try:
        images.get(name)
    except ImageNotFound:
        images.pull(name)
