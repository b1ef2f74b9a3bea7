"""Topics of patterns and names of messages, and what the dialect says of the same names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import parse_pattern, parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.endpoints.kafka.names import name_of, topics_of
from gateway.errors import SubjectError
from gateway.model.matching import matches

KAFKA = DIALECTS["kafka"]
_LEVELS = st.sampled_from(["a", "b", "", "x-1", "_y"])
_TOPICS = st.lists(_LEVELS, min_size=1, max_size=4).map(".".join)
_PATTERNS = st.builds(
    lambda levels, end: ".".join([*levels, *end]),
    st.lists(_LEVELS | st.just("*"), min_size=1, max_size=3),
    st.sampled_from([(), (">",)]),
)


@pytest.mark.parametrize(
    ("pattern", "topics"),
    [
        ("plant.7", "plant.7"),
        ("plant.7:a.>", "plant.7"),
        ("plant.>", r"^plant\..*$"),
        ("plant.*", r"^plant\.[^.]*$"),
        ("*.7:>", r"^[^.]*\.7$"),
        (">", "^.*$"),
    ],
)
def test_a_pattern_selects_topics_whatever_the_key(pattern: str, topics: str) -> None:
    assert topics_of(pattern) == topics


@given(_PATTERNS, _TOPICS)
def test_the_subscription_has_every_topic_of_a_pattern(pattern: str, topic: str) -> None:
    try:
        parsed, levels = parse_pattern(pattern, KAFKA), parse_subject(topic, KAFKA).levels
    except SubjectError:
        return
    wanted = topics_of(pattern)
    subscribed = re.fullmatch(wanted, topic) if wanted.startswith("^") else wanted == topic
    assert bool(subscribed) == any(matches(each, levels) for each in parsed)


@pytest.mark.parametrize(
    ("topic", "key", "name"),
    [
        ("t", None, "t"),
        ("t", b"", "t:"),
        ("t", "a:é".encode(), "t:a:é"),
    ],
)
def test_topic_and_key_are_a_name(topic: str, key: bytes | None, name: str) -> None:
    assert name_of(topic, key) == name


def test_a_key_that_is_no_utf_8_makes_no_name() -> None:
    with pytest.raises(SubjectError):
        parse_subject(name_of("t", b"\xff"), KAFKA)
