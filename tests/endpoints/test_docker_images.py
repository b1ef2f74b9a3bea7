"""A test that needs a Docker image is skipped when the image cannot be pulled."""

from __future__ import annotations

import pytest

pytest.importorskip("docker", reason="testcontainers is not installed")

from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from tests.endpoints.docker_images import provide_images

IMAGE = "vendor/broker:latest"


class FakeImages:
    """Images of an engine that fails to pull with `error`.

    Mutable: owned by the test.
    """

    def __init__(self, error: Exception | None = None, present: tuple[str, ...] = ()) -> None:
        self._error, self._present = error, present
        self.pulled: list[str] = []

    def get(self, name: str, /) -> object:
        if name not in self._present:
            raise ImageNotFound(f"no such image: {name}")
        return name

    def pull(self, repository: str, /) -> object:
        if self._error is not None:
            raise self._error
        self.pulled.append(repository)
        return repository


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ImageNotFound("no manifest"), id="image-not-found"),
        pytest.param(NotFound("pull access denied"), id="not-found"),
        pytest.param(APIError("registry-1.docker.io: no such host"), id="registry-unreachable"),
        pytest.param(DockerException("error while fetching server API version"), id="no-engine"),
        pytest.param(ConnectionRefusedError("connection refused"), id="connection-refused"),
    ],
)
def test_an_image_that_cannot_be_pulled_skips_the_test(error: Exception) -> None:
    with pytest.raises(pytest.skip.Exception) as skipped:
        provide_images(lambda: FakeImages(error), IMAGE)

    assert str(skipped.value) == f"the image {IMAGE} cannot be pulled: {error}"


def test_an_engine_that_does_not_answer_skips_the_test() -> None:
    def connect() -> FakeImages:
        raise DockerException("connection refused")

    with pytest.raises(pytest.skip.Exception, match="connection refused"):
        provide_images(connect, IMAGE)


def test_only_missing_images_are_pulled() -> None:
    images = FakeImages(present=("helper:1",))

    provide_images(lambda: images, IMAGE, "helper:1")

    assert images.pulled == [IMAGE]


def test_other_errors_fail_the_test() -> None:
    with pytest.raises(TypeError):
        provide_images(lambda: FakeImages(TypeError("a defect")), IMAGE)
