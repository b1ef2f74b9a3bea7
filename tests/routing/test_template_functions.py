from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.registry import find_dialect
from gateway.errors import SubjectError, TranslationError
from gateway.proofs.search.collisions import find_collision
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import (
    Placeholder,
    RestPlaceholder,
    TextTemplate,
    parse_template,
    parse_text_template,
)
from gateway.routing.template_functions import (
    Levels,
    TextLocation,
    apply_functions,
    parse_functions,
)

MQTT, EMS = find_dialect("mqtt"), find_dialect("ems")
SOURCE = parse_source("orders/{region}/{rest...}", MQTT)
CAPTURES: dict[str, Levels] = {"region": ("emea-fx",), "rest": ("a", "b", "c")}
CONSTANTS = {"@system": "mqtt", "@endpoint": "plant.a"}

MADE = [
    pytest.param("O.{region|upper}", ("O", "EMEA-FX"), id="upper"),
    pytest.param("O.{rest...|upper}", ("O", "A", "B", "C"), id="upper-of-each-level"),
    pytest.param("O.{region|upper|lower}", ("O", "emea-fx"), id="chain"),
    pytest.param("O.{region|slice:0:4}", ("O", "emea"), id="slice"),
    pytest.param("O.{region|slice:-2:}", ("O", "fx"), id="slice-from-the-end"),
    pytest.param("O.{region|slice:9:}", ("O", ""), id="slice-of-nothing-is-an-empty-level"),
    pytest.param("O.{rest...|slice:1:}", ("O", "b", "c"), id="slice-of-levels"),
    pytest.param("O.{rest...|join:-}", ("O", "a-b-c"), id="join"),
    pytest.param("O.x{rest...|join:-}y", ("O", "xa-b-cy"), id="joined-it-may-share-a-level"),
    pytest.param("O.{rest...|join:}", ("O", "abc"), id="join-with-nothing"),
    pytest.param("O.{rest...|join:.}", ("O", "a.b.c"), id="the-renderer-escapes-the-dots"),
    pytest.param(r"O.{rest...|join:\:}", ("O", "a:b:c"), id="escaped-colon"),
    pytest.param(r"O.{rest...|join:\|\}\\}", ("O", r"a|}\b|}\c"), id="escaped-others"),
    pytest.param("O.{region|split:-:1}", ("O", "fx"), id="split"),
    pytest.param("O.{region|split:-:-2}", ("O", "emea"), id="split-from-the-end"),
    pytest.param("O.{region|bucket:1}", ("O", "0"), id="one-bucket"),
    pytest.param("{@system}.{region}", ("mqtt", "emea-fx"), id="system"),
    pytest.param("{@endpoint|upper}.x", ("PLANT.A", "x"), id="endpoint"),
]


@pytest.mark.parametrize(("template", "levels"), MADE)
def test_a_template_applies_its_functions(template: str, levels: Levels) -> None:
    made = parse_template(template, EMS, SOURCE, constants=CONSTANTS)

    assert made.expand(CAPTURES).levels == levels


WRONG = [
    ("O.{region|uper}", 10, "unknown-function", "unknown function 'uper'; did you mean 'upper'?"),
    ("O.{region|}", 10, "unknown-function", "known are upper, lower, slice, join, split, bucket"),
    ("O.{region|lower|slice:1}", 16, "function-arguments", "write slice:START:END"),
    ("O.{region|slice:a:}", 10, "function-arguments", "'a' is not an integer"),
    ("O.{region|bucket:0}", 10, "function-arguments", "0 buckets are outside 1..100000"),
    ("O.{region|bucket:٣}", 10, "function-arguments", "is not an integer"),
    ("O.{region|split::0}", 10, "function-arguments", "the separator is empty"),
    ("O.{region|join:-}", 10, "function-levels", "a capture of any number of levels"),
    ("O.{rest...|split:-:0}", 11, "function-levels", "join them first"),
    ("O.{rest...|join:-|join:-}", 18, "function-levels", "'join' takes"),
    ("O.{regoin|upper}", 2, "unknown-capture", "did you mean {region}?"),
    ("O.{@sytem}", 2, "unknown-capture", "did you mean {@system}?"),
    ("O.{region", 2, "template", "a brace belongs to a capture"),
    ("O.x{rest...|upper}", 3, "rest-capture", "must fill its own"),
    ("O.{region|upper}..x", 17, "empty-element", "is empty"),
    ("O.{region}.>", 11, "wildcard-in-name", "'>' is a wildcard"),
    ("O.{@system|split:-:3}", 10, "missing-part", "1 parts at '-', and none with index 3"),
]


@pytest.mark.parametrize(("template", "offset", "rule", "reason"), WRONG)
def test_a_wrong_function_has_an_offset(template: str, offset: int, rule: str, reason: str) -> None:
    with pytest.raises(SubjectError) as caught:
        parse_template(template, EMS, SOURCE, constants=CONSTANTS)

    assert (caught.value.offset, caught.value.rule) == (offset, rule)
    assert reason in caught.value.reason


def test_a_source_pattern_has_no_functions() -> None:
    with pytest.raises(SubjectError, match="functions are legal in a template only"):
        parse_source("a/{b|upper}", MQTT)


def test_too_many_captures_are_refused() -> None:
    with pytest.raises(SubjectError, match="more than 1000 captures"):
        parse_template("{region}" * 7_000, MQTT, SOURCE)


def test_a_missing_part_is_refused_with_its_name() -> None:
    template = parse_template("O.{region|split:-:5}", EMS, SOURCE)

    with pytest.raises(TranslationError) as caught:
        template.expand(CAPTURES)

    assert caught.value.rule == "missing-part"


def test_a_joined_rest_is_a_placeholder_within_a_level() -> None:
    levels = parse_template("O.{rest...|join:-}.{rest...|upper}", EMS, SOURCE).levels

    assert isinstance(levels[1], TextTemplate)
    assert isinstance(part := levels[1].parts[0], Placeholder)
    assert isinstance(levels[2], RestPlaceholder)
    assert not part.functions[0].injective


def test_buckets_stay_the_same_in_every_release() -> None:
    functions = parse_functions("|bucket:16", TextLocation("", ""), single_level=True)

    found = [apply_functions(functions, (text,))[0] for text in ("", "a", "EURUSD", "é漢")]

    assert found == ["4", "15", "6", "13"]  # the last hex digit of `b2sum -l 64`


CHAINS = [
    ("|upper", True), ("|lower", False), ("|slice:0:3", True), ("|slice:2:", True),
    ("|slice:1:", False), ("|slice:3:5", False), ("|slice::3", False), ("|join:-", False),
    ("|join:", False), ("|join:-|split:-:2", False), ("|split:-:0", True), ("|split:-:-3", True),
    ("|split:ab:4", True), ("|bucket:100000", True), ("|bucket:2", False), ("|slice:-2:", True),
    ("|upper|bucket:9", False),
]  # fmt: skip


@pytest.mark.parametrize(("chain", "single_level"), CHAINS)
def test_a_lossy_chain_has_an_example(chain: str, single_level: bool) -> None:
    functions = parse_functions(chain, TextLocation("", chain), single_level=single_level)

    found = find_collision(functions, single_level=single_level)

    assert not all(function.injective for function in functions)
    assert found is not None
    assert found[0] != found[1]
    assert apply_functions(functions, found[0]) == apply_functions(functions, found[1])


def test_a_slice_of_everything_is_injective() -> None:
    functions = parse_functions("|slice::", TextLocation("", ""), single_level=True)

    assert functions[0].injective
    assert find_collision(functions, single_level=True) is None


@given(st.text(alphabet="{}|:\\@.…ab1", max_size=30))
def test_no_text_raises_anything_but_its_error(text: str) -> None:
    with contextlib.suppress(SubjectError):
        assert parse_template(text, MQTT, SOURCE).text == text


TEXT_TEMPLATES = [("desk {region|upper}!", "desk EMEA-FX!"), ("", ""), ("{@system}", "mqtt")]


@pytest.mark.parametrize(("text", "made"), TEXT_TEMPLATES)
def test_a_text_template_makes_plain_text(text: str, made: str) -> None:
    assert (
        parse_text_template(TextLocation("headers", text), SOURCE, CONSTANTS).expand(CAPTURES)
        == made
    )


def test_a_text_template_needs_joined_levels() -> None:
    with pytest.raises(SubjectError, match="join them"):
        parse_text_template(TextLocation("headers", "{rest...}"), SOURCE)
