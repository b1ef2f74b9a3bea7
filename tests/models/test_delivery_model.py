"""Spin searches every run of `docs/models/delivery.pml`, and finds each broken rule."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.models.spin import Model, needs_spin, rules_of

MODEL: Final = Path(__file__).parents[2] / "docs" / "models" / "delivery.pml"

pytestmark = needs_spin

CONFIGURATIONS: Final = [
    pytest.param("", id="one-fault"),
    pytest.param("FAULTS=0", id="no-fault"),
    pytest.param("SPOOL=0", id="no-spool"),
    pytest.param("SPOOL=0 FAULTS=2", id="no-spool-two-faults"),
    pytest.param("MESSAGES=1 FAULTS=2", id="one-message-two-faults"),
    pytest.param("REJECTS=0 FAULTS=2", id="two-faults"),  # the largest: 2.7 GB
    pytest.param("IDENTITY=1 REJECTS=0 FAULTS=2", id="identity-two-faults"),
    pytest.param("MESSAGES=1 BOTH=1", id="both-targets"),
]
# A broken rule, with the smallest options that show it: a few need a message id or two faults.
NEEDED: Final = {"NEWER_BEFORE_PUT_BACK": "FAULTS=2", "DROPPED_BEFORE_ROWS": "IDENTITY=1"}


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(MODEL, tmp_path, compressed=True)


@pytest.mark.nightly
def test_two_messages_and_one_fault_have_no_error(model: Model) -> None:
    assert "errors: 0" in model.search("REJECTS=0")


@pytest.mark.nightly
@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_no_run_has_an_error(options: str, model: Model) -> None:
    assert "errors: 0" in model.search(options)


@pytest.mark.nightly
def test_every_rule_is_reached(model: Model) -> None:
    reached = model.lines_taken("IDENTITY=1") | model.lines_taken("MESSAGES=1 BOTH=1")

    assert model.lines_of_rules() <= reached


@pytest.mark.nightly
@pytest.mark.parametrize("options", ["", "IDENTITY=1"])
def test_every_run_ends(options: str, model: Model) -> None:
    assert "errors: 0" in model.search(f"MESSAGES=1 {options}", "-l", defines="-DNP")


@pytest.mark.nightly
@pytest.mark.parametrize("rule", rules_of(MODEL))
def test_a_broken_rule_is_found(rule: str, model: Model) -> None:
    output = model.search(f"BREAK={rule} {NEEDED.get(rule, '')}")

    assert "assertion violated" in output
    assert "errors: 1" in output
