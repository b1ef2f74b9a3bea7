"""Each rule of delivery, broken once, is found by the simulation within 2,000 seeds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.simulation.mutations import MUTATIONS, Mutation, applied, seeds_until_found

NOT_FOUND = {"a refused copy has no echo"}  # docs/delivery.md says so


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.rule for each in MUTATIONS])
def test_a_rule_can_be_broken(mutation: Mutation) -> None:
    """A mutation of something that moved breaks nothing, and the night would say so late."""
    real = vars(mutation.owner)[mutation.name]
    with applied(mutation):
        assert vars(mutation.owner)[mutation.name] is not real
    assert vars(mutation.owner)[mutation.name] is real


def test_the_document_names_mutations() -> None:
    text = (Path(__file__).parents[2] / "docs" / "delivery.md").read_text(encoding="utf-8")
    table = text.partition("| rule | broken | finding |\n")[2].partition("\n\n")[0]
    rules = re.findall(r"^\| (\w[^|]+) \|", table, re.MULTILINE)

    assert len(rules) > 10
    assert {*rules} <= {each.rule for each in MUTATIONS}


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.rule for each in MUTATIONS])
def test_a_broken_rule_is_found(mutation: Mutation) -> None:
    assert (mutation.rule in NOT_FOUND) is (seeds_until_found(mutation) is None)
