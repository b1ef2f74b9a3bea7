from __future__ import annotations

import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import SubjectError, TranslationError
from gateway.model.message import Payload, Value
from gateway.routing.payload_conversion import (
    PayloadConversion,
    PayloadForm,
    parse_conversion,
)

CONVERTED = [
    ("text", "utf-8", "é".encode(), "é"),
    ("text", "latin-1", b"\xe9", "é"),
    ("text", "cp037", b"\xc1", "A"),  # EBCDIC
    ("text", "utf-8", "x", "x"),
    ("bytes", "utf-8", "é", "é".encode()),
    ("bytes", "utf-16-le", "é", b"\xe9\x00"),
    ("bytes", "utf-8", b"\xff", b"\xff"),
    (
        "json",
        "utf-8",
        {"a": [1, 2.5, None, True, "é"]},
        '{"a": [1, 2.5, null, true, "é"]}'.encode(),
    ),
    ("json", "utf-8", MappingProxyType({"a": MappingProxyType({"b": 1})}), b'{"a": {"b": 1}}'),
    ("json", "utf-8", {"a": (1, 2)}, b'{"a": [1, 2]}'),
    ("json", "utf-8", ' {"a":1}', b' {"a":1}'),
    ("json", "utf-8", b"[1]", b"[1]"),
    ("json", "latin-1", b'"\xe9"', '"é"'.encode()),
    ("map", "utf-8", b'{"a": {"b": [1, "x"]}}', {"a": {"b": [1, "x"]}}),
    ("map", "utf-8", '{"a": -9223372036854775808}', {"a": -(2**63)}),
    ("map", "utf-8-sig", b'\xef\xbb\xbf{"a":1}', {"a": 1}),
    ("map", "utf-8", '{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    ("map", "utf-8", {"a": b"x"}, {"a": b"x"}),
]


@pytest.mark.parametrize(("form", "encoding", "payload", "made"), CONVERTED)
def test_a_payload_is_converted(form: str, encoding: str, payload: Payload, made: Payload) -> None:
    found = parse_conversion(form, encoding).convert(payload)

    assert found == made
    assert isinstance(found, type(made))


@pytest.mark.parametrize(("form", "payload"), [("text", "x"), ("bytes", b"x"), ("map", {"a": 1})])
def test_a_payload_that_has_the_form_is_not_touched(form: str, payload: Payload) -> None:
    assert parse_conversion(form).convert(payload) is payload


REFUSED = [
    ("text", b"\xff", "is not utf-8"),
    ("text", {"a": 1}, "convert it to json"),
    ("bytes", "\ud800", "a character has no utf-8"),
    ("bytes", {"a": 1}, "convert it to json"),
    ("json", {"a": math.nan}, "without a JSON form"),
    ("json", {"a": math.inf}, "without a JSON form"),
    ("json", {"a": b"x"}, "without a JSON form"),
    ("json", {"a": "\ud800"}, "without a JSON form"),
    ("json", b"{", "is not JSON"),
    ("map", b"", "is not JSON"),
    ("map", b"\xff", "is not utf-8"),
    ("map", "[1]", "not an object"),
    ("map", "1", "not an object"),
    ("map", '{"a":1,"a":2}', "a key twice"),
    ("map", '{"a":NaN}', "NaN and infinities"),
    ("map", '{"a":-Infinity}', "NaN and infinities"),
    ("map", '{"a":1e400}', "past what a double holds"),
    ("map", '{"a":9223372036854775808}', "past 64 bits"),
    ("map", '{"a":' + "9" * 100_000 + "}", "past 64 bits"),
    ("map", '{"a":"\\ud800"}', "half a character"),
    ("map", '{"\\uDC00":1}', "half a character"),
    ("map", '{"a":"\ud800"}', "half a character"),
    ("map", '{"a":' * 65 + "1" + "}" * 65, "deeper than 64"),
    ("map", '{"a":' * 100_000, "deeper than 64|is not JSON"),
    ("map", "[" * 100_000 + "]" * 100_000, "deeper than 64"),
    ("map", '\ufeff{"a":1}', "is not JSON"),
]


@pytest.mark.parametrize(("form", "payload", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_a_payload_that_cannot_become_it_is_refused(
    form: str, payload: Payload, reason: str
) -> None:
    with pytest.raises(TranslationError, match=reason) as caught:
        parse_conversion(form).convert(payload)

    assert caught.value.rule == "payload"
    assert len(str(caught.value)) < 200  # and never the payload


def test_json_up_to_the_depth_limit_is_accepted() -> None:
    text = '{"a":' * 64 + "1" + "}" * 64

    assert (
        json.dumps(PayloadConversion(PayloadForm.MAP).convert(text), separators=(",", ":")) == text
    )


def test_a_map_deeper_than_the_stack_is_refused() -> None:
    deep: Value = 1
    for _ in range(50_000):
        deep = {"a": deep}
    assert isinstance(deep, dict)

    with pytest.raises(TranslationError, match="deeper than 64"):
        PayloadConversion(PayloadForm.JSON).convert(deep)


@pytest.mark.parametrize("encoding", ["nope", "hex", "rot13", "utf-7", "idna", "", "\0", "ütf"])
def test_an_encoding_that_is_no_text_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(SubjectError) as caught:
        parse_conversion("text", encoding)

    assert caught.value.rule == "encoding"


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(SubjectError, match="known are text, bytes, json, map"):
        parse_conversion("xml")


SCALARS: st.SearchStrategy[Value] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)  # fmt: skip
MAPS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    max_size=4,
)


@given(MAPS)
def test_a_map_survives_json(value: dict[str, Value]) -> None:
    written = PayloadConversion(PayloadForm.JSON).convert(value)

    assert PayloadConversion(PayloadForm.MAP).convert(written) == value


ODD = st.text(alphabet='{}[]",:\\u0dDcCfe1-+.NaIty \ud800', max_size=30)


@given(
    st.sampled_from(["text", "bytes", "json", "map"]),
    st.sampled_from(["utf-8", "utf-16", "ascii", "cp500", "shift_jis"]),
    st.one_of(ODD, st.binary(max_size=20), MAPS),
)
def test_no_payload_raises_anything_but_its_error(
    form: str, encoding: str, payload: Payload
) -> None:
    try:
        found = parse_conversion(form, encoding).convert(payload)
    except TranslationError as error:
        assert error.rule == "payload"  # noqa: PT017  # the other way out is fine as well
    else:
        kinds = {"text": str, "bytes": bytes, "json": bytes, "map": dict}
        assert isinstance(found, kinds[form])
