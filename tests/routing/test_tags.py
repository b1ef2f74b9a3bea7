from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.registry import find_dialect
from gateway.errors import SubjectError, TranslationError
from gateway.model.message import NO_HEADERS, Value
from gateway.routing.route import Route, Target
from gateway.routing.router import Router
from gateway.routing.source_pattern import SourcePattern, parse_source
from gateway.routing.tags import TagMode, TagRule, TagSelection, join_tags, parse_tags, select_tags
from gateway.routing.template import parse_template
from gateway.translate.names import Renderer

YAMI4, MQTT = find_dialect("yami4"), find_dialect("mqtt")
TAGS = "orders.emea,desk.fx,orders.apac,audit,orders.emea"


def pattern(text: str) -> SourcePattern:
    return parse_source(text, YAMI4)


ORDERS = pattern("orders.{region}")


def picks(
    rule: TagRule, tags: str = TAGS, source: SourcePattern = ORDERS
) -> tuple[TagSelection, ...]:
    return select_tags(parse_tags(tags, YAMI4), rule, source, source.selects)


def unused_properties(rule: TagRule, tags: str = TAGS) -> list[dict[str, Value]]:
    """Return the properties of the copies that a route without header rules makes."""
    route = Route("r", "in", YAMI4, ORDERS, (Target("out", "out", Renderer(MQTT)),), tags=rule)
    (match,) = Router(YAMI4, [route])[tags]
    return [dict(each.rules.apply(NO_HEADERS, 0).properties) for each in match.deliveries]


def test_distinct_tags_are_parsed_in_order() -> None:
    found = [(tag.text, tag.subject.levels) for tag in parse_tags(TAGS, YAMI4)]

    assert found == [
        ("orders.emea", ("orders", "emea")),
        ("desk.fx", ("desk", "fx")),
        ("orders.apac", ("orders", "apac")),
        ("audit", ("audit",)),
    ]


def test_a_dialect_without_tag_lists_reads_a_comma_as_text() -> None:
    (tag,) = parse_tags("a,b/c", MQTT)

    assert tag.subject.levels == ("a,b", "c")


@pytest.mark.parametrize("text", ["a\0b", "a,b\0", "a,\ud800"])
def test_an_illegal_tag_is_refused(text: str) -> None:
    with pytest.raises(SubjectError):
        parse_tags(text, YAMI4)


def test_each_makes_a_copy_for_every_selected_tag() -> None:
    rule = TagRule(unused_tags_property="tags")

    found = [(pick.tag.text, pick.captures["region"], pick.unused_tags) for pick in picks(rule)]

    assert found == [
        ("orders.emea", ("emea",), ("desk.fx", "audit")),
        ("orders.apac", ("apac",), ("desk.fx", "audit")),
    ]
    assert unused_properties(rule)[0] == {"tags": "desk.fx,audit"}


FIRST = [
    pytest.param(TagRule(TagMode.FIRST), "orders.emea", id="first-of-the-list"),
    pytest.param(TagRule(TagMode.FIRST, (pattern("orders.apac"),)), "orders.apac", id="preferred"),
    pytest.param(
        TagRule(TagMode.FIRST, (pattern("orders.us"), pattern("*.apac"))),
        "orders.apac",
        id="next-preferred",
    ),
    pytest.param(TagRule(TagMode.FIRST, (pattern("audit"),)), "orders.emea", id="not-taken"),
]


@pytest.mark.parametrize(("rule", "chosen"), FIRST)
def test_first_makes_one_copy_and_keeps_the_other_tags(rule: TagRule, chosen: str) -> None:
    (pick,) = picks(rule)

    assert pick.tag.text == chosen
    assert {pick.tag.text, *pick.unused_tags} == set(TAGS.split(","))


def test_combine_has_captures_from_several_tags() -> None:
    require_tags = (pattern("desk.{desk}"),)
    template = parse_template("erp/{region}/{desk}/{1}", MQTT, ORDERS, require_tags=require_tags)

    (pick,) = picks(TagRule(TagMode.COMBINE, require_tags=require_tags))

    assert template.expand(pick.captures).levels == ("erp", "emea", "fx", "emea")
    assert pick.unused_tags == ("orders.apac", "audit")


def test_combine_without_a_required_tag_is_refused() -> None:
    with pytest.raises(TranslationError, match="no tag matches 'desk") as caught:
        picks(TagRule(TagMode.COMBINE, require_tags=(pattern("desk.{desk}"),)), "orders.emea,audit")

    assert caught.value.rule == "missing-tag"


def test_a_route_that_takes_no_tag_makes_no_copy() -> None:
    assert picks(TagRule(), "audit,desk.fx") == ()


def test_there_is_no_property_without_a_name_or_unused_tags() -> None:
    rule = TagRule(TagMode.FIRST, unused_tags_property="tags")

    assert unused_properties(rule, "orders.emea") == [{}]
    assert unused_properties(TagRule()) == [{}, {}]


def test_a_name_becomes_several_tags_once_each() -> None:
    source = parse_source("orders/{region}/{desk}", MQTT)
    captures = source.capture(("orders", "emea", "fx"))
    templates = [
        parse_template(text, YAMI4, source)
        for text in ("orders.{region}", "desk.{desk}", "orders.{region|lower}")
    ]

    names = [".".join(template.expand(captures).levels) for template in templates]

    assert join_tags(names) == "orders.emea,desk.fx"


TEXTS = st.lists(st.sampled_from(["orders.a", "orders.b", "x", "", "a.b.c"]), min_size=1)


@given(TEXTS, st.sampled_from(TagMode))
def test_no_tag_is_lost_or_duplicated(tags: list[str], mode: TagMode) -> None:
    found = picks(TagRule(mode), ",".join(tags))

    taken = [pick.tag.text for pick in found]
    assert len(taken) == len(set(taken))
    assert bool(taken) == any(tag.startswith("orders.") for tag in tags)
    for pick in found:
        assert pick.tag.text not in pick.unused_tags
    if found:
        assert set(taken) | set(found[0].unused_tags) == set(tags)
