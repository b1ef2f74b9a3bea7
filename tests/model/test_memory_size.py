"""Estimated sizes: never far below the memory that is taken, and sums over parts are exact."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.memory_size import headers_size, messages_size
from gateway.model.message import Headers, Message, Value
from gateway.model.proof_text import MAX_PROOF

LARGE = 60_000  # characters


def taken(make: Callable[[], object]) -> int:
    """Return the bytes of memory of what `make` returns."""
    tracemalloc.start()
    try:
        made = make()
        size, _ = tracemalloc.get_traced_memory()
        del made
    finally:
        tracemalloc.stop()
    return size


def text(number: int) -> str:
    return f"{number}:" + "x" * LARGE


MESSAGES: dict[str, Callable[[int], Message]] = {
    "name": lambda each: Message(text(each), b""),
    "name-of-wide-characters": lambda each: Message(text(each) + "\U0001f600", b""),
    "text-payload": lambda each: Message("a", text(each) + "\U0001f600"),
    "empty-lists": lambda each: Message("a", {"all": [[] for _ in range(5_000 + each)]}),
    "small-properties": lambda each: Message(
        "a", b"", Headers(properties={f"{number}-{each}": f"{number}" for number in range(5_000)})
    ),
    "repeated-property": lambda each: Message(
        "a", b"", Headers(properties={"p": [f"{number}-{each}" for number in range(5_000)]})
    ),
    "origin": lambda each: Message(
        "a", b"", Headers(origin=tuple(f"{number}-{each}" for number in range(5_000)))
    ),
    "reply": lambda each: Message("a", b"", Headers(reply_to=text(each))),
    "correlation": lambda each: Message("a", b"", Headers(correlation_id=text(each).encode())),
    "content-type": lambda each: Message("a", b"", Headers(content_type=text(each))),
    "proof": lambda each: Message("a", b"", proof=f"{each}" + "a" * MAX_PROOF),
    "source-id": lambda each: Message("a", b"", Headers(source_id=text(each))),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_all_that_a_message_holds_is_counted(kind: str) -> None:
    def make() -> list[Message]:
        return [MESSAGES[kind](number) for number in range(10)]

    size = messages_size(make())

    assert 0.75 * taken(make) < size


def test_deep_values_are_counted() -> None:
    deep: Value = b""
    for _ in range(10_000):
        deep = [deep]
    assert messages_size([Message("a", {"a": deep})]) > 10_000
    assert messages_size([Message("a", {"a": 1 << 16_000})]) > 2_000


def test_a_changed_copy_of_headers_is_counted_anew() -> None:
    headers = Headers(properties={"a": "b"})
    size = headers_size(headers)

    assert headers_size(replace(headers, redelivered=True)) == size
    assert headers_size(replace(headers, reply_to="x" * 100)) > size + 100
    assert headers == Headers(properties={"a": "b"})


VALUES = st.integers() | st.text() | st.binary() | st.lists(st.text())
EVERY_MESSAGE = st.builds(
    Message,
    st.text(),
    st.binary() | st.text() | st.dictionaries(st.text(), VALUES),
    st.builds(
        Headers,
        reply_to=st.none() | st.text(),
        origin=st.lists(st.text()).map(tuple),
        properties=st.dictionaries(st.text(), VALUES),
    ),
)


@given(st.lists(EVERY_MESSAGE))
def test_the_parts_of_a_sequence_have_its_size(messages: list[Message]) -> None:
    size = messages_size(messages)
    for message in messages:
        message.address.encode("utf-8", "surrogatepass")  # a text may now keep its UTF-8

    assert sum(messages_size([message]) for message in messages) == size
