"""No verdict of a world of twenty dates contradicts what is true in it.

`python -m tests.nights.model_of_dates SEED --log` tells what happened in a world.
"""

from __future__ import annotations

import pytest

from tests.nights.model_of_dates.campaign import judged_world, whole_world
from tests.nights.model_of_dates.mutations import MUTATIONS, seeds_until_found

SHORT = range(4)
NIGHTLY = 500
FIRST_NIGHTLY = 1_000_000  # other seeds than those of every day


@pytest.mark.parametrize("seed", SHORT)
def test_no_verdict_of_a_date_contradicts_the_truth(seed: int) -> None:
    judge, log = judged_world(seed)

    assert judge.contradictions == [], "\n".join(log)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("first", range(FIRST_NIGHTLY, FIRST_NIGHTLY + 20 * NIGHTLY, NIGHTLY))
def test_no_verdict_of_many_worlds_contradicts_the_truth(first: int) -> None:
    worlds = ((seed, judged_world(seed)[0]) for seed in range(first, first + NIGHTLY))

    assert {seed: made.contradictions[0] for seed, made in worlds if made.contradictions} == {}


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_is_found(name: str) -> None:
    assert seeds_until_found(name, range(FIRST_NIGHTLY, FIRST_NIGHTLY + NIGHTLY))


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(FIRST_NIGHTLY, FIRST_NIGHTLY + 10))
def test_no_whole_night_contradicts_the_truth(seed: int) -> None:
    nights, log = whole_world(seed, 20)

    assert nights.contradictions == [], "\n".join(log)
