"""The links that the product plans, in the world of the model."""

from __future__ import annotations

import pytest

from tests.models.nights.campaign import Run
from tests.models.nights.product import ProductNights


@pytest.mark.nightly
def test_no_planned_night_contradicts_the_truth() -> None:
    found = {seed: _contradictions(seed) for seed in range(100)}

    assert {seed: lines for seed, lines in found.items() if lines} == {}


def _contradictions(seed: int) -> list[str]:
    return Run(seed, ProductNights()).run()
