"""The configurations of the relay's shapes are valid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.relay import SHAPES, Shape, configuration
from gateway.config.load import load


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_gateway_takes_the_configuration_of_each_shape(tmp_path: Path, shape: Shape) -> None:
    few = replace(shape, routes=min(shape.routes, 3), subscriptions=min(shape.subscriptions, 5))
    file = tmp_path / "bench.yaml"
    file.write_text(configuration(few, 1, 2, tmp_path / "archive"))

    assert len(load(file).routes) == max(few.routes, few.subscriptions)
