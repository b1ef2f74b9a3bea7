"""W3C Trace Context, section 3.2: valid and invalid `traceparent` values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.message import Properties
from gateway.tracing.context import TraceContext, context_of, with_context

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
EXPECTED = TraceContext(int(TRACE, 16), int(SPAN, 16), sampled=True)

VALID = [
    pytest.param(f"00-{TRACE}-{SPAN}-01", True, id="sampled"),
    pytest.param(f"00-{TRACE}-{SPAN}-00", False, id="not-sampled"),
    pytest.param(f"00-{TRACE}-{SPAN}-fe", False, id="other-flags"),
    pytest.param(f"00-{TRACE}-{SPAN}-03", True, id="sampled-and-random"),
    pytest.param(f"cc-{TRACE}-{SPAN}-01", True, id="later-version"),
    pytest.param(f"cc-{TRACE}-{SPAN}-01-what-comes", True, id="later-version-with-more"),
]
INVALID = [
    pytest.param("", id="empty"),
    pytest.param(f"ff-{TRACE}-{SPAN}-01", id="forbidden-version"),
    pytest.param(f"00-{TRACE}-{SPAN}-01-more", id="version-00-with-more"),
    pytest.param(f"cc-{TRACE}-{SPAN}-01.more", id="more-without-a-dash"),
    pytest.param(f"00-{TRACE.upper()}-{SPAN}-01", id="capitals"),
    pytest.param(f"00-{'0' * 32}-{SPAN}-01", id="no-trace"),
    pytest.param(f"00-{TRACE}-{'0' * 16}-01", id="no-span"),
    pytest.param(f"00-{TRACE[1:]}-{SPAN}-01", id="short"),
    pytest.param(f"00-{TRACE}-{SPAN}-1", id="short-flags"),
    pytest.param(f" 00-{TRACE}-{SPAN}-01\n", id="space-around"),
    pytest.param(17, id="a-number"),
    pytest.param(b"00", id="bytes"),
]


@pytest.mark.parametrize(("text", "sampled"), VALID)
def test_a_valid_context_is_parsed(text: str, sampled: bool) -> None:
    found = context_of({"traceparent": text, "tracestate": "a=1"})

    assert found == TraceContext(EXPECTED.trace, EXPECTED.span, sampled, "a=1")


@pytest.mark.parametrize("value", INVALID)
def test_an_invalid_context_is_none(value: str | int | bytes) -> None:
    assert context_of({"traceparent": value, "tracestate": "a=1"}) is None


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        pytest.param({"a": 1}, {"a": 1}, id="none-before"),
        pytest.param(
            {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "v=1", "a": 1},
            {"tracestate": "v=1", "a": 1},
            id="state-is-kept",
        ),
        pytest.param(
            {"traceparent": "x", "tracestate": "v=1"}, {}, id="state-without-context-is-removed"
        ),
    ],
)
def test_a_new_context_replaces_the_old_one(before: Properties, kept: Properties) -> None:
    assert with_context(before, 1, 2) == {**kept, "traceparent": f"00-{1:032x}-{2:016x}-01"}


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1))
def test_a_written_context_is_parsed(trace: int, span: int) -> None:
    assert context_of(with_context({}, trace, span)) == TraceContext(trace, span, sampled=True)


@given(st.text() | st.integers() | st.none())
def test_no_value_raises_an_exception(value: str | int | None) -> None:
    assert context_of({"traceparent": value}) is None
