from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import matches_text
from gateway.dialects.registry import DIALECTS
from tests.cases.matching import ROWS
from tests.cases.yami4_matching import ROWS as YAMI4_ROWS
from tests.strategies import pairs
from tests.systems import SYSTEMS, selects

TAGS = st.text("ab.*,", max_size=7)


@pytest.mark.parametrize(("system", "pattern", "name", "received", "source"), ROWS)
def test_a_vendor_example_matches_as_documented(
    system: str, pattern: str, name: str, received: bool, source: str
) -> None:
    assert matches_text(pattern, name, DIALECTS[system]) is received, source
    assert selects(system, pattern, name) is received, f"tests/dialects/rules.py, {source}"


@pytest.mark.parametrize(("tags", "pattern", "matched"), YAMI4_ROWS)
def test_tags_match_as_in_the_reference_broker(tags: str, pattern: str, matched: bool) -> None:
    assert matches_text(pattern, tags, DIALECTS["yami4"]) is matched


@pytest.mark.parametrize("system", SYSTEMS)
@given(data=st.data())
def test_the_matcher_agrees_with_the_plain_rules(system: str, data: st.DataObject) -> None:
    pattern, name = data.draw(pairs(system))

    assert matches_text(pattern, name, DIALECTS[system]) == selects(system, pattern, name)


@given(TAGS, TAGS)
def test_tags_match_as_a_regular_expression_does(pattern: str, tags: str) -> None:
    def one(wanted: str, tag: str) -> bool:
        last = len(wanted) - 1
        pieces = (
            re.escape(char) if char != "*" else ".+" if at == last else "[^.]*+"
            for at, char in enumerate(wanted)
        )
        return re.fullmatch("".join(pieces), tag, re.DOTALL) is not None

    expected = pattern == tags or any(
        one(wanted, tag) for wanted in pattern.split(",") for tag in tags.split(",")
    )
    assert matches_text(pattern, tags, DIALECTS["yami4"]) is expected
