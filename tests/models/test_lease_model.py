"""Spin searches every run of `docs/models/lease.pml`, and finds each broken rule."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.models.spin import Model, needs_spin, rules_of

MODEL: Final = Path(__file__).parents[2] / "docs" / "models" / "lease.pml"
SMALL: Final = "SECONDS=3 LEASES=2"  # a million states
LIVE: Final = "LIVE=1 SECONDS=4 LEASES=1"

pytestmark = needs_spin

CONFIGURATIONS: Final = [
    pytest.param("SECONDS=3 LEASES=3", id="three-leases"),
    pytest.param("SECONDS=3 LEASES=3 KUBERNETES=1", id="kubernetes"),
    pytest.param("SECONDS=6 LEASES=2", id="finer-time"),  # the largest: 10 million states, 1.3 GB
]
BROKEN: Final = [
    *(f"BREAK={rule} SECONDS=3 LEASES=3" for rule in rules_of(MODEL) if "EMPTY" not in rule),
    "BREAK=TAKEN_NOT_EXCLUSIVELY SECONDS=3 LEASES=2 KUBERNETES=1",
    f"MARGIN=0 {SMALL}",
    f"DRIFT=1 {SMALL}",  # clocks whose speeds differ by more than the margin
]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(MODEL, tmp_path)


def test_no_two_instances_hand_over_in_two_leases(model: Model) -> None:
    assert "errors: 0" in model.search(SMALL)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "options",
    [
        f"BREAK=RENEWED_FROM_ANSWER {SMALL}",
        f"MARGIN=0 {SMALL}",
    ],
)
def test_a_lease_that_is_held_too_long_is_found(options: str, model: Model) -> None:
    assert "assertion violated" in model.search(options)


@pytest.mark.nightly
@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_no_two_instances_hand_over(options: str, model: Model) -> None:
    assert "errors: 0" in model.search(options)


@pytest.mark.nightly
@pytest.mark.parametrize("options", BROKEN)
def test_a_broken_rule_is_found(options: str, model: Model) -> None:
    output = model.search(options)

    assert "assertion violated" in output
    assert "errors: 1" in output


@pytest.mark.nightly
@pytest.mark.parametrize("store", ["KUBERNETES=0", "KUBERNETES=1"])
def test_the_other_instance_takes_over_and_keeps_the_lease(store: str, model: Model) -> None:
    assert "errors: 0" in model.search(f"{LIVE} {store}", "-a", "-f", defines="-DNFAIR=3")


@pytest.mark.nightly
def test_a_lease_that_nobody_takes_is_found(model: Model) -> None:
    output = model.search(f"{LIVE} BREAK=EMPTY_FILE_IS_HELD", "-a", "-f", defines="-DNFAIR=3")

    assert "acceptance cycle" in output
    assert "errors: 1" in output


@pytest.mark.nightly
def test_every_rule_is_reached(model: Model) -> None:
    broken = "BREAK=CHECKED_BEFORE_LAST_STEP"
    options = (SMALL, f"{SMALL} KUBERNETES=1", f"{SMALL} {broken}", f"{SMALL} LIVE=1")
    reached = [model.lines_taken(each) for each in options]

    assert model.lines_of_rules() <= set().union(*reached)
