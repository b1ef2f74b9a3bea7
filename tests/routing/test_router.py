"""The cache of a router."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.routing import router
from gateway.routing.router import Router
from tests.model.test_memory_size import taken
from tests.runtime.one_route import ONE_ROUTE

MAX_SIZE = 4 << 20  # bytes


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Router:
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    routes = load(file).routes
    monkeypatch.setattr(router, "MAX_CACHE_SIZE", MAX_SIZE)
    return Router(routes[0].dialect, routes)


@pytest.mark.parametrize(
    ("count", "length"), [pytest.param(8_000, 3, marks=pytest.mark.nightly), (150, 60_000)]
)
@pytest.mark.parametrize(
    "prefix", ["a/", "no-route/", pytest.param("a//", marks=pytest.mark.nightly)]
)
def test_the_cached_names_take_limited_memory(
    empty: Router, count: int, length: int, prefix: str
) -> None:
    def fill() -> Router:
        for number in range(count):
            empty[prefix + "x" * length + f"{number}"]
        return empty

    assert taken(fill) < MAX_SIZE
    assert empty
