"""The cache of a router."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.dialects.dialect import Dialect
from gateway.routing import origin_path, router
from gateway.routing.router import Router
from gateway.routing.tags import Tag, parse_tags
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


def test_a_name_is_taken_apart_once_for_each_side_of_a_copy(
    empty: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a long name is its passes; it is read for its route, and for each place."""
    read: list[str] = []

    def counted(text: str, dialect: Dialect) -> tuple[Tag, ...]:
        read.append(text)
        return parse_tags(text, dialect)

    monkeypatch.setattr(router, "parse_tags", counted)
    monkeypatch.setattr(origin_path, "parse_tags", counted)
    name = "a/" + "x" * 60_000
    ((delivery,),) = (each.deliveries for each in empty[name])

    assert sorted(read) == sorted([name, name, delivery.address])
