from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.imports.source_lines import ParsedFile, read_ems, read_mosquitto


def texts(parsed: ParsedFile) -> list[tuple[int, str]]:
    return [(line.location.line, line.text) for line in parsed.lines]


EMS = [
    pytest.param("a\n\n  b  \r\nc", [(1, "a"), (3, "b"), (4, "c")], id="blank-and-cr"),
    pytest.param("# x\na # y\n", [(2, "a")], id="comments"),
    pytest.param("a#b\n", [(1, "a#b")], id="hash-inside-a-word"),
    pytest.param('q="x # y" # z\n', [(1, 'q="x # y"')], id="hash-in-quotes"),
    pytest.param("a \\\n  b\nc\n", [(1, "a b"), (3, "c")], id="backslash-joins"),
    pytest.param("a\\\nb\n", [(1, "a\\"), (2, "b")], id="backslash-of-a-name"),
    pytest.param("a p,\n  q\n", [(1, "a p, q")], id="comma-joins"),
    pytest.param("\ufeffa\n", [(1, "a")], id="byte-order-mark"),
]


@pytest.mark.parametrize(("text", "expected"), EMS)
def test_ems_lines_keep_their_locations(text: str, expected: list[tuple[int, str]]) -> None:
    assert texts(read_ems("f", text.encode(), comma_joins=True)) == expected


MOSQUITTO = [
    pytest.param("#a 1\nb  2 \n", [(2, "b  2")], id="comment-in-the-first-column"),
    pytest.param("topic # in 0\n", [(1, "topic # in 0")], id="hash-is-a-wildcard"),
    pytest.param("  topic a\n", [(1, "topic a")], id="indented"),
    pytest.param("a \\\nb\n", [(1, "a \\"), (2, "b")], id="nothing-joins"),
]


@pytest.mark.parametrize(("text", "expected"), MOSQUITTO)
def test_mosquitto_lines_keep_their_locations(text: str, expected: list[tuple[int, str]]) -> None:
    assert texts(read_mosquitto("f", text.encode())) == expected


def test_comments_directly_above_belong_to_a_line() -> None:
    parsed = read_mosquitto("f", b"# far\n\n# one\n## two\na\nb\n")

    assert [line.comments for line in parsed.lines] == [("one", "two"), ()]


def test_a_line_of_another_encoding_is_omitted_and_the_next_is_read() -> None:
    parsed = read_ems("f", b"a\nM\xfcller\nc\n")

    assert texts(parsed) == [(1, "a"), (3, "c")]
    assert [str(each) for each in parsed.omitted] == [
        "f:2: this line: not carried over; it is not UTF-8; save the file as UTF-8"
    ]


@given(data=st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    for parsed in (read_ems("f", data, comma_joins=True), read_mosquitto("f", data)):
        assert all(line.text.strip() for line in parsed.lines)


def test_a_long_line_needs_no_more_than_a_few_copies_of_itself() -> None:
    data = b"a b" * 100_000 + b" # comment"
    tracemalloc.start()
    try:
        read_ems("f", data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 10 * len(data)
