"""Any dialect may have names of a topic and a key: an invented one beside Kafka."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import matches_text, parse_pattern, parse_subject, render_pattern
from gateway.dialects.dialect import Dialect, Prohibition, WildcardPlacement
from gateway.dialects.escape import LevelCodec
from gateway.dialects.parts import BOUNDARY_EXCLUDED
from gateway.dialects.registry import DIALECTS, check
from gateway.dialects.systems.kafka import KAFKA
from gateway.dialects.systems.mqtt import MQTT
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import FORBIDDEN_CHARACTER
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Literal, Pattern
from gateway.routing.name_rules import to_routes, to_rules
from gateway.routing.router import Router
from gateway.translate.names import OnUnmappable, Renderer, Translator
from gateway.translate.subscriptions import translate_pattern
from tests.proofs.routes import route
from tests.strategies import PIECES

_KEY = Dialect(
    name="invented",
    level_noun="level",
    separator="/",
    any_one="+",
    any_many="#",
    any_many_minimum=0,
    reference="",
    wildcard_placement=WildcardPlacement.PLAIN,
)
INVENTED = replace(
    _KEY,
    key=_KEY,
    exclusions=BOUNDARY_EXCLUDED,
    forbidden={":": Prohibition(FORBIDDEN_CHARACTER, "a colon ends the topic")},
)
LEVEL = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
LEVELS = st.lists(st.one_of(LEVEL, LEVEL, st.just(":")), min_size=1, max_size=5)


@given(LEVELS, LEVELS)
def test_levels_have_one_text_each(levels: list[str], others: list[str]) -> None:
    for dialect in (INVENTED, KAFKA):
        codec: LevelCodec = dialect.codec
        text = dialect.text_of(codec.encode(levels))

        assert codec.decode(dialect.levels_of(text)) == levels
        assert (dialect.text_of(codec.encode(others)) == text) == (levels == others)


@pytest.mark.parametrize(
    ("mqtt", "there"), [("a/b", "a/b"), ("a/:/b", "a:b"), ("a:b/:/c:d/", "a%3Ab:c:d/")]
)
def test_an_invented_system_has_topics_and_keys(mqtt: str, there: str) -> None:
    check(INVENTED)

    assert Translator(MQTT, Renderer(INVENTED)).name(mqtt) == there
    assert Translator(INVENTED, Renderer(MQTT)).name(there) == mqtt
    assert matches_text("a/+", there, INVENTED) is (there == "a/b")


@pytest.mark.parametrize(
    ("dialect", "reason"),
    [
        (replace(INVENTED, forbidden={}), "a topic takes ':'"),
        (replace(INVENTED, key=replace(_KEY, separator=".")), "differ in their separator"),
        (replace(INVENTED, key=replace(_KEY, any_one="*")), "differ in their separator"),
    ],
)
def test_a_dialect_whose_parts_do_not_fit_is_refused(dialect: Dialect, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check(dialect)


@pytest.mark.parametrize(
    "text", ["a.*:>", "a.>:*.b", "a.b:", "a_x20-b:a b.%2E", "a:%-", "a:%-.*", "_x24-a:>"]
)
def test_a_pattern_with_a_key_comes_back(text: str) -> None:
    (pattern,) = parse_pattern(text, KAFKA)

    assert render_pattern(pattern, KAFKA) == text


def test_a_key_level_that_reads_otherwise_alone_has_two_patterns() -> None:
    """`%-` is an empty level when it is alone, and a text when more levels follow."""
    alone, more = parse_pattern("a:%-.>", KAFKA)

    assert [alone.levels[2], *more.levels[2:]] == [Literal(""), Literal("%-"), AnyMany(1)]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [("a/:/", ("a:%-",)), ("a/:/%-", ("a:%25-",)), ("a/:/b", ("a:b",)), ("a/:/*", ("a:*",))],
)
def test_a_key_of_one_level_is_covered_in_its_own_spelling(
    pattern: str, texts: tuple[str, ...]
) -> None:
    assert translate_pattern(pattern, DIALECTS["ibm"], KAFKA).patterns == texts


@pytest.mark.parametrize(("name", "taken"), [("a:%-", False), ("a:.", True), ("a:.b", True)])
def test_an_empty_level_before_a_rest_is_no_key_of_one_level(name: str, taken: bool) -> None:
    (pattern,) = parse_pattern("a:.>", KAFKA)

    assert matches_text("a:.>", name, KAFKA) is taken
    assert matches(pattern, parse_subject(name, KAFKA).levels) is taken


def test_no_subscription_is_without_keys_only() -> None:
    with pytest.raises(TranslationError, match="no subscription selects exactly this"):
        render_pattern(Pattern((Literal("a"), AnyOne()), BOUNDARY_EXCLUDED), KAFKA)


def test_a_character_may_be_rejected_or_replaced() -> None:
    name = parse_subject("a b/:/c.d e", MQTT)

    replaced = Renderer(KAFKA, OnUnmappable.REPLACE, replacement="-").render(name)
    assert replaced == "a-b:c-d e"
    with pytest.raises(TranslationError, match=r"' ', '\.' cannot be spelled"):
        Renderer(KAFKA, OnUnmappable.REJECT).render(name)


def test_archived_rules_make_the_same_names() -> None:
    made = route("kafka", "a.{t...}:{k}.x", ("mqtt", "b/{t...}/:/{k}"), ("kafka-2", "c.{t...}:{k}"))
    (again,) = to_routes(json.loads(json.dumps(to_rules([made]))))

    for each in (made, again):
        (match,) = Router(KAFKA, [each])["a.b.c:k.x"]
        assert [copy.address for copy in match.deliveries] == ["b/b/c/:/k", "c.b.c:k"]
        assert list(Router(KAFKA, [each])["a.b.c"]) == []
