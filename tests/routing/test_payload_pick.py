"""Some fields of a JSON document: `payload: {pick: [a, b.c], set: {site: "{site}"}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import SubjectError, TranslationError
from gateway.model.message import Headers, Message, Payload, Value
from gateway.routing.payload_pick import DEFAULT_MAX, PayloadPick, parse_pick
from gateway.routing.router import Delivery, Router
from tests.proofs.routes import route

DEEP = b'{"a": ' * 65 + b"1" + b"}" * 65
PLAIN = route("mqtt", "o/{m}", ("mqtt-2", "to/{m}"))


def pick(
    *fields: str, sets: Mapping[str, Value] | None = None, whole: bool = False, most: int = 1_000
) -> PayloadPick:
    return parse_pick(
        pick=None if whole else fields,
        sets=sets or {},
        max_size=most,
        encoding="utf-8",
        source=PLAIN.source,
    )


PICKED = [
    pytest.param(b'{"a": 1, "b": 2}', ["a"], '{"a": 1}', id="a field"),
    pytest.param(b'{"a": {"b": 1, "c": 2}}', ["a.b"], '{"a": {"b": 1}}', id="an inner field"),
    pytest.param(b'{"a": {"b": 1, "c": 2}}', ["a.b", "a.c"], '{"a": {"b": 1, "c": 2}}', id="two"),
    pytest.param(b'{"a": {"b": 1}}', ["a", "a.b"], '{"a": {"b": 1}}', id="whole and inner"),
    pytest.param(b'{"b": 1, "a": 2}', ["a", "b"], '{"a": 2, "b": 1}', id="the order of the pick"),
    pytest.param(b'{"a": 1}', ["b", "a.c", "d.e"], "{}", id="none is there"),
    pytest.param(b'{"a": {"b": 1}}', ["a.c"], "{}", id="no inner one is there"),
    pytest.param(b'{"a": [{"b": 1}]}', ["a"], '{"a": [{"b": 1}]}', id="a list"),
    pytest.param(b'{"a": [{"b": 1}]}', ["a.b"], "{}", id="within a list"),
    pytest.param(b'{"a": null, "b": 0}', ["a"], '{"a": null}', id="null"),
    pytest.param(b'{"a": "\\u00e9\\n", "b": 0}', ["a"], '{"a": "é\\n"}', id="a text"),
    pytest.param(b'{"a": 1.50, "b": 0}', ["a"], '{"a": 1.50}', id="digits of a fraction"),
    pytest.param(b'{"a": 1E400, "b": -0}', ["a", "b"], '{"a": 1E400, "b": -0}', id="any number"),
    pytest.param(
        b'{"a": 123456789012345678901234567890.10}', ["a"],
        '{"a": 123456789012345678901234567890.10}', id="many digits",
    ),
    pytest.param('{"a": "é"}', ["a"], '{"a": "é"}', id="a text payload"),
    pytest.param(
        {"a": {"b": 1.5}, "c": True}, ["a.b", "c"], '{"a": {"b": 1.5}, "c": true}', id="map"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "fields", "expected"), PICKED)
def test_a_copy_has_the_picked_fields(
    payload: Payload, fields: Sequence[str], expected: str
) -> None:
    assert pick(*fields).convert(payload) == expected.encode()


REFUSED = [
    pytest.param(b"no JSON", "is not JSON", id="no JSON"),
    pytest.param(b"", "is not JSON", id="empty"),
    pytest.param(b"[1]", "not an object", id="a list"),
    pytest.param(b"\xff", "is not utf-8", id="no text"),
    pytest.param(b'{"a": 1, "a": 2}', "a key twice", id="a key twice"),
    pytest.param(b'{"x": {"b": 1, "\\u0062": 2}}', "a key twice", id="another spelling of a key"),
    pytest.param(DEEP, "deeper than 64", id="65 levels"),
    pytest.param(b'{"a": NaN}', "NaN", id="NaN"),
    pytest.param(b'{"a": "\\ud800"}', "half a character", id="half a character"),
    pytest.param({"a": b"x"}, "bytes", id="bytes in a map"),
    pytest.param({"a": float("nan")}, "JSON", id="NaN in a map"),
    pytest.param({"a": "\ud800"}, "half a character", id="half a character in a map"),
    pytest.param(b'{"a": "%s"}' % (b"x" * 1_000), "has 1009 bytes, and `max` is 1000", id="bytes"),
    pytest.param('{"a": "%s"}' % ("é" * 500), "has 1009 bytes", id="characters"),
    pytest.param({"a": "x" * 1_000}, "is past `max`", id="a large map"),
]


@pytest.mark.parametrize(("payload", "reason"), REFUSED)
def test_a_document_that_cannot_be_picked_is_a_dead_letter(payload: Payload, reason: str) -> None:
    with pytest.raises(TranslationError) as caught:
        pick("a").convert(payload)

    assert caught.value.rule == "payload"
    assert reason in str(caught.value)
    assert "xxx" not in str(caught.value)  # never the payload


SETS = [
    pytest.param(["a"], {"site": "hall"}, '{"a": 1, "site": "hall"}', id="beside a pick"),
    pytest.param([], {"x.y": 7, "x.z": None}, '{"x": {"y": 7, "z": null}}', id="inner fields"),
    pytest.param(["a"], {"a": True}, '{"a": true}', id="in place of a field"),
]


@pytest.mark.parametrize(("fields", "sets", "expected"), SETS)
def test_fields_are_set(fields: Sequence[str], sets: Mapping[str, Value], expected: str) -> None:
    made = pick(*fields, sets=sets).convert(b'{"a": 1, "b": 2.0}')

    assert made == expected.encode()


def test_a_document_without_a_pick_keeps_all_fields() -> None:
    made = pick(sets={"site": "x"}, whole=True).convert(b'{"a": 1.0, "b": {"c": []}}')

    assert made == b'{"a": 1.0, "b": {"c": []}, "site": "x"}'


def test_a_field_is_not_set_within_another_value() -> None:
    with pytest.raises(TranslationError, match="no object"):
        pick("a", sets={"a.b": 1}).convert(b'{"a": 1}')


def delivery(conversion: PayloadPick, message: Message) -> Delivery:
    one = replace(PLAIN, targets=(replace(PLAIN.targets[0], conversion=conversion),))
    ((found,),) = ([*match.deliveries] for match in Router(one.dialect, [one]).match(message))
    return found


def test_captures_and_fields_of_the_message_are_set() -> None:
    made = pick("a", sets={"machine": "{m|upper}", "site": "{property.s}"})
    message = Message("o/m1", b'{"a": 1}', Headers(properties={"s": "hall"}))

    found = delivery(made, message)

    assert found.conversion is not None
    assert found.conversion.convert(message.payload) == b'{"a": 1, "machine": "M1", "site": "hall"}'
    assert delivery(made, Message("o/m1", b"{}")).rule == "field"


WRONG = [
    pytest.param(["a..b"], {}, "a key is empty", id="an empty key"),
    pytest.param([""], {}, "a key is empty", id="no key"),
    pytest.param(["a"], {"b.": 1}, "a key is empty", id="an empty key to set"),
    pytest.param(["a"], {"b": "{unknown}"}, "unknown capture", id="an unknown capture"),
]


@pytest.mark.parametrize(("fields", "sets", "reason"), WRONG)
def test_a_wrong_pick_is_an_error(
    fields: Sequence[str], sets: Mapping[str, Value], reason: str
) -> None:
    with pytest.raises(SubjectError, match=reason):
        pick(*fields, sets=sets)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc", min_size=1), inner),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), JSON))
def test_a_picked_document_means_the_same(document: dict[str, Value]) -> None:
    text = json.dumps(document)

    whole = parse_pick(
        pick=[*document], sets={}, max_size=DEFAULT_MAX, encoding="utf-8", source=PLAIN.source
    )
    assert json.loads(whole.convert(text)) == document
