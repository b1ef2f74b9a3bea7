from __future__ import annotations

import pytest

from gateway.dialects.base import parse_subject
from gateway.dialects.registry import find_dialect
from gateway.errors import SubjectError, TranslationError
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template

# source system, pattern, name, captures
CAPTURES = [
    ("mqtt", "orders/{region}/{desk}/#", "orders/emea/fx/1/2",
     {"region": ("emea",), "1": ("emea",), "desk": ("fx",), "2": ("fx",), "3": ("1", "2")}),
    ("mqtt", "a/{rest...}", "a", {"rest": (), "1": ()}),  # '#' takes the parent level too
    ("mqtt", "$share/team/a/{x}/{rest...}", "a/b/c",  # MQTT 5.0, 4.8.2: the filter is `a/+/#`
     {"x": ("b",), "1": ("b",), "rest": ("c",), "2": ("c",)}),
    ("mqtt", "{rest...}", "a/b", {"rest": ("a", "b"), "1": ("a", "b")}),
    ("ems", "orders.{region}.{rest...}", "orders.emea.x",
     {"region": ("emea",), "1": ("emea",), "rest": ("x",), "2": ("x",)}),
    ("ibm", "#/{unit}/results", "a/b/pump/results",
     {"1": ("a", "b"), "unit": ("pump",), "2": ("pump",)}),
    ("smf", "animals/{kind}/cats/>", "animals/wild/cats/leopard",
     {"kind": ("wild",), "1": ("wild",), "2": ("leopard",)}),
    ("smf", "animals/red*/{x}", "animals/redder/1", {"1": ("redder",), "x": ("1",), "2": ("1",)}),
    ("smf", "a/>/{x}/{rest...}", "a/>/b/c",
     {"x": ("b",), "1": ("b",), "rest": ("c",), "2": ("c",)}),
    ("nats", "a.b*.*", "a.b*.c", {"1": ("c",)}),  # a star beside other characters is plain
    ("rabbitmq", "*b.#.{x}", "*b.c.d.e", {"1": ("c", "d"), "x": ("e",), "2": ("e",)}),
    ("rabbitmq", "{r...}.{x}.b.c.*", "1.2.3.b.c.4",  # the dots of `{r...}` separate no words
     {"r": ("1", "2"), "1": ("1", "2"), "x": ("3",), "2": ("3",), "3": ("4",)}),
    ("ibm", "l#+/+/{x}", "l#+/b/c", {"1": ("b",), "x": ("c",), "2": ("c",)}),
    ("yami4", "a.{x}.c", "a.b.c", {"x": ("b",), "1": ("b",)}),
    ("yami4", "a.{rest...}", "a.b.c", {"rest": ("b", "c"), "1": ("b", "c")}),
    ("yami4", "a.{last}", "a.b", {"last": ("b",), "1": ("b",)}),
    ("smartsockets", "/orders/{region}/...", "/orders/emea/1",
     {"region": ("emea",), "1": ("emea",), "2": ("1",)}),
]  # fmt: skip


@pytest.mark.parametrize(("system", "pattern", "name", "captures"), CAPTURES)
def test_a_pattern_captures_the_levels_of_a_name(
    system: str, pattern: str, name: str, captures: dict[str, tuple[str, ...]]
) -> None:
    dialect = find_dialect(system)
    source = parse_source(pattern, dialect)
    levels = parse_subject(name, dialect).levels

    assert source.selects(levels)
    assert source.capture(levels) == captures


NOT_SELECTED = [
    ("mqtt", "orders/{region}", "orders/a/b"),
    ("ems", "a.{rest...}", "a"),  # '>' takes one level at least
    ("yami4", "a.{last}", "a.b.c"),  # the broker's last star takes more: the gateway does not
    ("mqtt", "{first}/x", "$SYS/x"),  # MQTT 5.0, 4.7.2
]


@pytest.mark.parametrize(("system", "pattern", "name"), NOT_SELECTED)
def test_a_pattern_does_not_select_other_names(system: str, pattern: str, name: str) -> None:
    dialect = find_dialect(system)

    assert not parse_source(pattern, dialect).selects(parse_subject(name, dialect).levels)


ILLEGAL = [
    ("mqtt", "a/x{b}/c", 3, "{b} does not fill its level"),
    ("mqtt", "a/{b}/{b}", 6, "'b' names two captures"),
    ("mqtt", "a/{b/c", 2, "a brace belongs to a capture: {name} or {name...}"),
    ("mqtt", "a/{rest...}/b", 2, "'#' is the rest wildcard and not last"),
    ("mqtt", "line/{line}/#/x", 12, "'#' is the rest wildcard and not last"),
    ("smf", "a/{b}/{rest...}/c", 6, "{rest...} takes the rest of a name and is not last"),
    ("yami4", "a.{rest...}.c", 2, "{rest...} takes the rest of a name and is not last"),
]


@pytest.mark.parametrize(("system", "pattern", "offset", "reason"), ILLEGAL)
def test_an_illegal_capture_has_an_offset(
    system: str, pattern: str, offset: int, reason: str
) -> None:
    with pytest.raises(SubjectError) as caught:
        parse_source(pattern, find_dialect(system))

    assert (caught.value.offset, caught.value.reason) == (offset, reason)


TEMPLATES = [
    (
        "orders/{region}/{rest...}",
        "ORDERS.{region}.{rest...}",
        "orders/emea/fx/1",
        "ORDERS.emea.fx.1",
    ),
    ("orders/{region}/{rest...}", "O.{rest...}.{region}", "orders/emea/fx", "O.fx.emea"),
    ("orders/{region}/{desk}", "O.{region}-{desk}", "orders/emea/fx", "O.emea-fx"),
    ("orders/+/#", "O.{1}.{2}", "orders/emea/fx/7", "O.emea.fx.7"),
    ("orders/{id}", "O.{id}", "orders/v1.2", "O.v1%2E2"),
]


@pytest.mark.parametrize(("pattern", "template", "name", "made"), TEMPLATES)
def test_a_template_makes_a_name(pattern: str, template: str, name: str, made: str) -> None:
    mqtt, ems = find_dialect("mqtt"), find_dialect("ems")
    source = parse_source(pattern, mqtt)
    levels = parse_subject(name, mqtt).levels

    subject = parse_template(template, ems, source).expand(source.capture(levels))

    assert subject == parse_subject(made, ems)


WRONG_TEMPLATES = [
    ("O.{nowhere}", "unknown-capture"),
    ("O.x{rest...}", "rest-capture"),
    ("O..x", "empty-element"),
    ("O.>", "wildcard-in-name"),
    ("O.\ue000", "template"),
]


@pytest.mark.parametrize(("template", "rule"), WRONG_TEMPLATES)
def test_a_wrong_template_names_its_rule(template: str, rule: str) -> None:
    source = parse_source("orders/{region}/{rest...}", find_dialect("mqtt"))

    with pytest.raises((SubjectError, TranslationError)) as caught:
        parse_template(template, find_dialect("ems"), source)

    assert getattr(caught.value, "rule", "") == rule


MISMATCHES = [
    ("mqtt", "line/{x}/a", "line/7/b", "level 3 is 'b', the pattern has 'a'"),
    ("mqtt", "line/#", "Line/7", "level 1 is 'Line', the pattern has 'line' (differs in case)"),
    ("mqtt", "line/+", "line/7/a", "the name has 3 levels, the pattern 2"),
    ("mqtt", "line/+/a", "line", "the name has 1 level, the pattern 3"),
    ("mqtt", "#", "$SYS/x", "level 1 is '$SYS', which a wildcard does not select"),
    ("ems", "a.>", "a", "the name has 1 level, the pattern at least 2"),
    ("smf", "a/red*/b", "a/blue/b", "level 2 is 'blue', the pattern has 'red*'"),
    ("yami4", "a.{x}", "a.b.c", "the name has 3 levels, the pattern 2"),
    ("rabbitmq", "#.b.c", "a.b.d", ""),  # a rest wildcard before levels has no first difference
    ("kafka", "{topic}:line.{x}", "t:Line.7", ""),  # a key has no level numbers
]


@pytest.mark.parametrize(("system", "pattern", "name", "expected"), MISMATCHES)
def test_a_mismatch_says_where_it_begins(
    system: str, pattern: str, name: str, expected: str
) -> None:
    dialect = find_dialect(system)
    source, levels = parse_source(pattern, dialect), parse_subject(name, dialect).levels

    assert not source.selects(levels)
    found = source.mismatch(levels)

    assert found == "the pattern does not match" + (f": {expected}" if expected else "")
