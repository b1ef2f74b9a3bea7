from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.registry import find_dialect
from gateway.errors import SubjectError, TranslationError
from gateway.model.message import NO_HEADERS, NO_PROPERTIES, DeliveryMode, Headers, Value
from gateway.routing.header_draft import FIELD_NAMES, HeaderDraft, parse_header_name
from gateway.routing.header_rules import NO_RULES, HeaderRules, parse_header_rules
from gateway.routing.source_pattern import parse_source

SOURCE = parse_source("orders/{region}/{rest...}", find_dialect("mqtt"))
CAPTURES = {"region": ("emea",), "rest": ("a", "b")}
NOW = 1_700_000_000_000_000
SECOND = 1_000_000
Table = Mapping[str, Value]


def rules(
    maps: Mapping[str, Table] = MappingProxyType({}),
    renames: Mapping[str, str] = MappingProxyType({}),
    drops: Sequence[str] = (),
    keeps: Sequence[str] = (),
    sets: Table = NO_PROPERTIES,
) -> HeaderRules:
    return parse_header_rules(
        maps=maps,
        renames=renames,
        drops=drops,
        keeps=keeps,
        sets=sets,
        source=SOURCE,
        constants={"@system": "mqtt"},
    )


def props(**values: Value) -> Headers:
    return Headers(properties=values)


APPLIED = [
    pytest.param(rules(sets={"desk": "fx"}), NO_HEADERS, props(desk="fx"), id="set"),
    pytest.param(rules(sets={"n": 1}), props(n=True), props(n=1), id="set-changes-a-type"),
    pytest.param(rules(sets={"a": None}), props(a=1, b=2), props(b=2), id="set-to-nothing"),
    pytest.param(rules(sets={"a": "{region|upper} {@system}"}), NO_HEADERS, props(a="EMEA mqtt"),
                 id="set-with-captures"),
    pytest.param(rules(sets={"priority": 7}), NO_HEADERS, Headers(priority=7), id="priority"),
    pytest.param(rules(sets={"property.priority": 7}), NO_HEADERS, props(priority=7),
                 id="property"),
    pytest.param(rules(sets={"mode": "at_least_once"}), NO_HEADERS,
                 Headers(mode=DeliveryMode.AT_LEAST_ONCE), id="mode"),
    pytest.param(rules(sets={"ttl": 1.5}), NO_HEADERS, Headers(expiry=NOW + 1_500_000), id="ttl"),
    pytest.param(rules(sets={"expiry": 5}), NO_HEADERS, Headers(expiry=5_000), id="expiry"),
    pytest.param(rules(sets={"content_type": "a/b", "reply_to": "r", "correlation_id": 12}),
                 NO_HEADERS, Headers(content_type="a/b", reply_to="r", correlation_id="12"),
                 id="fields"),
    pytest.param(rules(sets={"retained": True}), NO_HEADERS, Headers(retained=True), id="retain"),
    pytest.param(rules(sets={"retained": "false"}), Headers(retained=True), NO_HEADERS,
                 id="clear-retain"),
    pytest.param(rules(drops=["retained"]), Headers(retained=True), NO_HEADERS, id="drop-retain"),
    pytest.param(rules(maps={"retained": {"true": False}}), Headers(retained=True), NO_HEADERS,
                 id="map-retain"),
    pytest.param(rules(renames={"keep": "retained"}), props(keep="true"), Headers(retained=True),
                 id="property-to-retain"),
    pytest.param(rules(renames={"retained": "was"}), Headers(retained=True), props(was=True),
                 id="retain-to-property"),
    pytest.param(rules(drops=["ttl", "reply_to", "a"]),
                 Headers(expiry=1, reply_to="r", properties={"a": 1}), NO_HEADERS, id="drop"),
    pytest.param(rules(drops=["x-*"], keeps=["x-a", "x-b*"]),
                 Headers(properties={"x-a": 1, "x-bc": 2, "x-c": 3, "y": 4}),
                 Headers(properties={"x-a": 1, "x-bc": 2, "y": 4}), id="drop-and-keep"),
    pytest.param(rules(drops=["*"]), props(a=1, b=2), NO_HEADERS, id="drop-all"),
    pytest.param(rules(renames={"a": "b"}), props(a=1, b=2), props(b=1), id="rename"),
    pytest.param(rules(renames={"a": "b", "b": "a"}), props(a=1, b=2), props(a=2, b=1), id="swap"),
    pytest.param(rules(renames={"p": "priority"}), props(p="7"), Headers(priority=7),
                 id="to-field"),
    pytest.param(rules(renames={"correlation_id": "corr"}), Headers(correlation_id=b"c"),
                 props(corr=b"c"), id="from-field"),
    pytest.param(rules(renames={"id": "correlation_id"}), props(id=b"c"),
                 Headers(correlation_id=b"c"), id="bytes-stay-bytes"),
    pytest.param(rules(renames={"expiry": "until"}), Headers(expiry=5_999), props(until=5),
                 id="expiry-in-milliseconds"),
    pytest.param(rules(renames={"ttl": "left"}), Headers(expiry=NOW + 2 * SECOND), props(left=2.0),
                 id="seconds-left"),
    pytest.param(rules(maps={"u": {"low": 1, "high": 9}}), props(u="high"), props(u=9), id="map"),
    pytest.param(rules(maps={"u": {"7": "x", "true": "y", "*": "z"}}), props(u=7), props(u="x"),
                 id="map-by-text"),
    pytest.param(rules(maps={"u": {"7": "x", "true": "y", "*": "z"}}), props(u=True), props(u="y"),
                 id="map-a-truth"),
    pytest.param(rules(maps={"u": {"a": 1, "*": None}}), props(u="b"), NO_HEADERS,
                 id="map-otherwise"),
    pytest.param(rules(maps={"u": {"low": 1}}, renames={"u": "priority"}), props(u="low"),
                 Headers(priority=1), id="map-before-rename"),
    pytest.param(rules(renames={"a": "b"}, drops=["b"], sets={"b": 3}), props(a=1), props(b=3),
                 id="rename-before-drop-before-set"),
]  # fmt: skip


@pytest.mark.parametrize(("given_rules", "before", "after"), APPLIED)
def test_rules_change_headers(given_rules: HeaderRules, before: Headers, after: Headers) -> None:
    made = given_rules.bind(CAPTURES).apply(before, NOW)

    assert made == after
    assert {n: type(v) for n, v in made.properties.items()} == {
        n: type(v) for n, v in after.properties.items()
    }


FULL = Headers(
    priority=7, expiry=1_234_567, content_type="a/b", correlation_id="c", reply_to="r",
    properties={"a": 1},
)  # fmt: skip
IDLE = [
    pytest.param(NO_RULES, id="none"),
    pytest.param(rules(), id="empty"),
    pytest.param(rules(sets={"priority": 7, "a": 1, "content_type": "a/b"}), id="set-the-same"),
    pytest.param(rules(drops=["gone", "x-*"]), id="drop-nothing"),
    pytest.param(rules(renames={"gone": "priority"}), id="rename-nothing"),
    pytest.param(rules(maps={"a": {"2": 3}, "expiry": {"5": 6}, "gone": {"*": 1}}), id="map-none"),
]


@pytest.mark.parametrize("idle", IDLE)
def test_the_same_object_comes_back_when_nothing_changes(idle: HeaderRules) -> None:
    assert idle.apply(FULL, NOW) is FULL


def test_rules_without_captures_bind_to_themselves() -> None:
    fixed = rules(sets={"a": "{@system}"})

    assert fixed.bind(CAPTURES) is fixed


def test_a_property_can_be_added() -> None:
    made = NO_RULES.with_property("tags", "a,b").apply(NO_HEADERS, NOW)

    assert made.properties == {"tags": "a,b"}


def test_rules_with_unbound_captures_are_refused() -> None:
    with pytest.raises(TranslationError, match="not bound"):
        rules(sets={"a": "{region}"}).apply(NO_HEADERS, NOW)


MISFITS = [
    ({"p": "priority"}, "high", "not an integer from 0 to 9"),
    ({"p": "priority"}, 10, "not an integer from 0 to 9"),
    ({"p": "priority"}, -1, "not an integer from 0 to 9"),
    ({"p": "priority"}, True, "not an integer from 0 to 9"),
    ({"p": "priority"}, "٣", "not an integer from 0 to 9"),
    ({"p": "expiry"}, "9" * 30, "not an integer"),
    ({"p": "ttl"}, math.nan, "not a positive number of seconds"),
    ({"p": "ttl"}, math.inf, "not a positive number of seconds"),
    ({"p": "ttl"}, 0, "not a positive number of seconds"),
    ({"p": "ttl"}, True, "not a positive number of seconds"),
    ({"p": "mode"}, "PERSISTENT", "is none of at_most_once, at_least_once, exactly_once"),
    ({"p": "retained"}, 1, "is neither true nor false"),
    ({"p": "retained"}, "yes", "is neither true nor false"),
    ({"p": "content_type"}, b"x", "is not a text, or is empty"),
    ({"p": "reply_to"}, "", "is not a text, or is empty"),
    ({"p": "correlation_id"}, [1], "is not a text, or is empty"),
]


@pytest.mark.parametrize(("renames", "value", "reason"), MISFITS)
def test_a_value_that_does_not_fit_is_refused(
    renames: dict[str, str], value: Value, reason: str
) -> None:
    with pytest.raises(TranslationError, match=reason) as caught:
        rules(renames=renames).apply(props(p=value), NOW)

    assert caught.value.rule == "header"


WRONG: list[tuple[dict[str, object], str, str]] = [
    ({"sets": {"priority": 12}}, "priority", "not an integer from 0 to 9"),
    ({"sets": {"mode": "qos1"}}, "mode", "is none of"),
    ({"sets": {"a": "{regoin}"}}, "{regoin}", "did you mean {region}?"),
    ({"sets": {"a": "{rest...}"}}, "{rest...}", "join them"),
    ({"sets": {"a": "{"}}, "{", "a brace belongs to a capture"),
    ({"sets": {"": 1}}, "", "a name must not be empty"),
    ({"sets": {"x-*": 1}}, "x-*", "may end with a star"),
    ({"drops": ["mode"]}, "mode", "is none of"),
    ({"drops": ["a*b"]}, "a*b", "may end with a star"),
    ({"renames": {"a": "c", "b": "c"}}, "c", "two renames have this new name"),
    ({"renames": {"a": "property.a"}}, "property.a", "or it is the old name"),
    ({"renames": {"mode": "m"}}, "mode", "is none of"),
    ({"maps": {"priority": {"a": "b"}}}, "priority", "not an integer"),
]


@pytest.mark.parametrize(("keys", "text", "reason"), WRONG)
def test_a_wrong_rule_is_refused_when_it_is_read(
    keys: dict[str, object], text: str, reason: str
) -> None:
    with pytest.raises(SubjectError) as caught:
        rules(**keys)  # type: ignore[arg-type]  # one of each key's types

    assert caught.value.text == text
    assert reason in caught.value.reason


VALUES: st.SearchStrategy[Value] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.binary(max_size=3), st.lists(st.integers(), max_size=2),
)  # fmt: skip


@given(st.sampled_from([*FIELD_NAMES, "a"]), VALUES)
def test_a_value_that_was_read_can_be_written_again(name: str, value: Value) -> None:
    draft, slot = HeaderDraft(NO_HEADERS, NOW), parse_header_name(name)
    with contextlib.suppress(TranslationError):
        draft.write(slot, value)
    again = HeaderDraft(draft.finish(), NOW)
    again.write(slot, draft.read(slot))

    assert again.finish() == draft.finish()
