from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.trial.brokers.smf.subscription_table import (
    SubscriptionTable,
    compile_pattern,
    is_pattern,
    is_topic,
)

LEVELS = st.sampled_from(["a", "ab", "b", "*", "a*", ">", "#P2P", "$s", ""])

CASES = [
    pytest.param("animals/domestic/cats", "animals/domestic/cats", True, id="literal"),
    pytest.param("animals/*/cats/*", "animals/wild/cats/leopard", True, id="one-level"),
    pytest.param("animals/*/cats/>", "animals/domestic/cats/persian", True, id="vendor-example"),
    pytest.param("animals/*/cats/>", "animals/domestic/dogs/beagles", False, id="vendor-other"),
    pytest.param("a/>", "a", False, id="rest-needs-one"),
    pytest.param("a/>", "a/b/c", True, id="rest-takes-many"),
    pytest.param("a/>", "a/", True, id="rest-takes-an-empty-level"),
    pytest.param("red*", "red", True, id="prefix-itself"),
    pytest.param("red*", "redder", True, id="prefix"),
    pytest.param("red*", "red/der", False, id="prefix-stays-in-its-level"),
    pytest.param("a/b>", "a/b>", True, id="plain-greater"),
    pytest.param("a/b>", "a/bc", False, id="plain-greater-is-no-wildcard"),
    pytest.param("a/>/c", "a/b/c", False, id="greater-inside-is-plain"),
    pytest.param(">", "#P2P/x", False, id="p2p-first"),
    pytest.param("a/*", "a/#P2P", False, id="p2p-anywhere"),
    pytest.param("a/#*", "a/#P2P", False, id="p2p-prefix"),
    pytest.param("a/>", "a/b/#P2P", False, id="p2p-behind-rest"),
    pytest.param("a/>", "a/#P2PX", True, id="p2p-whole-level-only"),
    pytest.param("#P2P/>", "#P2P/x", True, id="p2p-literal"),
    pytest.param(">", "$SYS/x", False, id="dollar-first"),
    pytest.param("*/x", "$SYS/x", False, id="dollar-one-level"),
    pytest.param("a/>", "a/$x", True, id="dollar-later"),
    pytest.param("*", "a\nb", True, id="line-feed"),
]


@pytest.mark.parametrize(("pattern", "topic", "expected"), CASES)
def test_matching(pattern: str, topic: str, expected: bool) -> None:
    table: SubscriptionTable[str] = SubscriptionTable()
    table.add(pattern.encode(), "here")

    assert (table.find(topic.encode()) == ("here",)) is expected


@given(pattern=st.lists(LEVELS, min_size=1, max_size=4), topic=st.lists(LEVELS, min_size=1))
def test_the_table_agrees_with_a_slow_matcher(pattern: list[str], topic: list[str]) -> None:
    text, name = "/".join(pattern).encode(), "/".join(topic).encode()
    if not is_pattern(text):
        return
    compiled = compile_pattern(text)

    assert bool(compiled(name) if compiled else text == name) is slowly(pattern, topic)


def slowly(pattern: list[str], topic: list[str], *, first: bool = True) -> bool:
    if not pattern or not topic:
        return not pattern and not topic
    level, name = pattern[0], topic[0]
    if level == ">" and len(pattern) == 1:
        return "#P2P" not in topic and not (first and name.startswith("$"))
    if level == "*":
        fits = name != "#P2P" and not (first and name.startswith("$"))
    elif level.endswith("*"):
        fits = name != "#P2P" and name.startswith(level[:-1])
    else:
        fits = level == name
    return fits and slowly(pattern[1:], topic[1:], first=False)


LEGAL = [
    pytest.param("a" * 250, True, id="250-bytes"),
    pytest.param("a" * 251, False, id="251-bytes"),
    pytest.param("é" * 126, False, id="bytes-not-characters"),
    pytest.param("a/" * 127 + "a", False, id="128-levels-are-255-bytes"),
    pytest.param("", False, id="empty"),
    pytest.param("/a", False, id="empty-first-level"),
    pytest.param("a//b", False, id="empty-level"),
    pytest.param("*bro", False, id="star-in-front"),
    pytest.param("br*wn", False, id="star-inside"),
    pytest.param("a/>/b", True, id="greater-inside"),
]


@pytest.mark.parametrize(("pattern", "expected"), LEGAL)
def test_valid_and_invalid_subscriptions(pattern: str, expected: bool) -> None:
    assert is_pattern(pattern.encode()) is expected


@pytest.mark.parametrize(
    ("topic", "expected"),
    [("/", True), ("a//b", True), ("a*b", True), (">", True), ("", False), ("/" * 128, False)],
)
def test_valid_and_invalid_topics(topic: str, expected: bool) -> None:
    assert is_topic(topic.encode()) is expected


def test_removing_a_subscription_keeps_the_others() -> None:
    table: SubscriptionTable[str] = SubscriptionTable()
    for pattern, target in ((b"a", "1"), (b"a", "2"), (b"*", "2"), (b"b", "3")):
        table.add(pattern, target)
    assert table.find(b"a") == ("1", "2")

    table.remove(b"a", "2")
    table.remove(b"never", "2")
    assert table.find(b"a") == ("1", "2")
    table.remove(b"*", "2")

    assert table.find(b"a") == ("1",)
