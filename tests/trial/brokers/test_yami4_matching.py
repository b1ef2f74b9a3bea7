from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.trial.brokers.yami4.matching import PatternList, until_nul
from tests.cases.yami4_matching import ROWS

TEXT = st.text("ab.,*", max_size=8).map(str.encode)


@pytest.mark.parametrize(("tags", "patterns", "expected"), ROWS)
def test_tag_lists_match_as_in_the_table(tags: str, patterns: str, expected: bool) -> None:
    assert PatternList(patterns.encode()).matches(tags.encode()) is expected


def slow_model(tags: bytes, patterns: bytes) -> bool:
    """The matching rule as regular expressions."""
    if tags == patterns:
        return True
    return any(
        re.fullmatch(as_expression(pattern), tag, re.DOTALL)
        for pattern in patterns.split(b",")
        for tag in tags.split(b",")
    )


def as_expression(pattern: bytes) -> bytes:
    text = pattern.decode()
    return "".join(
        (".+" if position == len(text) - 1 else "[^.]*+") if char == "*" else re.escape(char)
        for position, char in enumerate(text)
    ).encode()


@given(TEXT, TEXT)
def test_the_matcher_agrees_with_the_rule(tags: bytes, patterns: bytes) -> None:
    assert PatternList(patterns).matches(tags) is slow_model(tags, patterns)


def test_many_tags_and_patterns_are_matched_in_one_pass() -> None:
    tags = b",".join(b"t%d" % n for n in range(2000))
    patterns = b",".join(b"p%d" % n for n in range(2000))

    assert not PatternList(patterns).matches(tags)
    assert PatternList(patterns + b",t7").matches(tags)


def test_nul_ends_a_list() -> None:
    assert until_nul(b"a.b\0,c") == b"a.b"
    assert until_nul(b"a.b") == b"a.b"
