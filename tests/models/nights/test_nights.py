"""No night says clean against the truth, or takes a clean back in silence."""

from __future__ import annotations

import pytest

from tests.models.nights.campaign import Run
from tests.models.nights.mutations import MUTATIONS, seeds_until_found
from tests.models.nights.reference import Nights

PART = 25
NIGHTLY = 1_000
FIRST_NIGHTLY = 1_000_000  # other seeds than those of every day


@pytest.mark.parametrize("first", range(0, 2 * PART, PART))
def test_no_clean_night_contradicts_the_truth(first: int) -> None:
    assert not _contradictions(range(first, first + PART))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(FIRST_NIGHTLY, FIRST_NIGHTLY + 10 * NIGHTLY, NIGHTLY))
def test_no_clean_night_of_many_contradicts_the_truth(first: int) -> None:
    assert not _contradictions(range(first, first + NIGHTLY))


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_is_found(name: str) -> None:
    assert seeds_until_found(name)


def test_a_seed_repeats_its_run() -> None:
    first, second = Run(5, Nights()), Run(5, Nights())

    assert first.run() == second.run()
    assert first.lines == second.lines


def test_nights_are_clean_and_not_clean() -> None:
    verdicts = {night.clean for seed in range(5) for night in _run(seed).world.archive.nights}

    assert verdicts == {True, False}


def _contradictions(seeds: range) -> dict[int, list[str]]:
    found = {seed: _run(seed).contradictions for seed in seeds}
    return {seed: each for seed, each in found.items() if each}


def _run(seed: int) -> Run:
    run = Run(seed, Nights())
    run.run()
    return run
