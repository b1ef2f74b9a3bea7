"""The laws of translation, with every drawn name and subscription tried against every system."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.registry import DIALECTS
from tests.systems import SYSTEMS
from tests.translate.laws import check_covering, check_round_trip


def _others(system: str) -> list[str]:
    return [other for other in SYSTEMS if other != system]


def test_the_table_has_a_row_for_every_system() -> None:
    assert list(SYSTEMS) == list(DIALECTS)


@pytest.mark.parametrize("source", SYSTEMS)
@given(data=st.data())
def test_there_and_back_is_the_same_name(source: str, data: st.DataObject) -> None:
    check_round_trip(source, _others(source), data)


@pytest.mark.parametrize("source", SYSTEMS)
@given(data=st.data())
def test_a_subscription_is_covered_by_the_fewest(source: str, data: st.DataObject) -> None:
    check_covering(source, _others(source), data)
