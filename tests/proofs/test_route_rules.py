"""Proofs about one route: mappings that fail with their example, and mappings that pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.dialects.base import parse_subject
from gateway.dialects.brokers import with_limits
from gateway.dialects.name_limits import NameLimits
from gateway.dialects.registry import DIALECTS
from gateway.proofs.search.translated_name import RefusedName, translate_name
from gateway.routing.source_pattern import parse_source
from gateway.routing.tags import TagMode, TagRule
from gateway.routing.template import parse_template
from gateway.translate.names import OnTooLong, OnUnmappable
from tests.proofs.routes import findings, only, route, rules, tagged

# source, pattern, target, template, the two names
LOSSY = [
    pytest.param("mqtt", "o/{a}/{b}", "ems", "E.{a}", ("o/x/x", "o/x/y"), id="capture-not-used"),
    pytest.param("mqtt", "o/{a}/#", "ems", "E.{a}", ("o/x", "o/x/x"), id="rest-not-used"),
    pytest.param("mqtt", "o/+/{b}", "ems", "E.{b}", ("o/x/x", "o/y/x"), id="wildcard-not-used"),
    pytest.param("mqtt", "o/{a}", "ems", "FIXED", ("o/x", "o/y"), id="fixed-name"),
    pytest.param("mqtt", "o/{a}/{b}", "ems", "E.{a}{b}", ("o/xx/x", "o/x/xx"), id="adjacent"),
    pytest.param(
        "mqtt", "o/{a}/{b}", "ems", "E.{a}-{b}", ("o/x-/x", "o/x/-x"), id="joined-by-a-character"
    ),
    pytest.param(
        "smf", "o/red*/{b}", "ems", "E.{1}{b}", ("o/redx/x", "o/red/xx"), id="prefix-and-adjacent"
    ),
    pytest.param("mqtt", "o/{a}", "ems", "E.{a|upper}", ("o/a", "o/A"), id="case"),
    pytest.param("mqtt", "o/{a}", "ems", "E.{a|slice:0:2}", None, id="slice"),
    pytest.param("mqtt", "o/{a}", "ems", "E.{a|split:-:0}", ("o/a", "o/a-b"), id="split"),
    pytest.param("mqtt", "o/{r...}", "ems", "E.{r...|join:-}", ("o/a-b", "o/a/b"), id="join"),
    pytest.param("mqtt", "o/{a}", "ems", "E.{a|bucket:4}", None, id="bucket"),
    pytest.param("ibm", "#/a/#", "ems", "E", ("a", "x/a"), id="two-rests-not-used"),
    pytest.param("yami4", "o.a*", "ems", "E.{1}", ("o.a.x", "o.a.y"), id="end-of-a-tag"),
]


@pytest.mark.parametrize(("source", "pattern", "target", "template", "names"), LOSSY)
def test_two_names_that_become_one_are_shown(
    source: str, pattern: str, target: str, template: str, names: tuple[str, str] | None
) -> None:
    found = only(findings(route(source, pattern, (target, template))), "not-injective")

    assert (found.severity, found.source, found.target) == ("error", 0, 0)
    assert len(set(found.example)) == 2
    assert names is None or set(found.example) == set(names)


INJECTIVE = [
    ("mqtt", "o/{a}/{b}", "ems", "E.{b}.x.{a}"),
    ("mqtt", "o/{a}/{r...}", "ems", "{a}.E.{r...}"),
    ("mqtt", "o/{a}/{b}", "ems", "E.{a}-{b}.{a}"),  # the second level tells where the first is cut
    ("mqtt", "o/{a}/{b}", "ems", "E.pre{a}post.{b}"),
    ("mqtt", "o/{a}", "ems", "E.{a}{a}"),
    ("mqtt", "o/{a}", "ems", "E.{a|slice:0:}"),  # all of it
    ("mqtt", "o/{a}", "ems", "E.{a|upper}.{a}"),
    ("ems", "o.>", "smf", None),
    ("ibm", "#/a/#", "mqtt", None),
    ("yami4", "o.{r...}", "ems", "E.{r...}"),
    ("yami4", "o.{a}", "ems", "E.{a}"),
    ("smartsockets", "/o/b*z/{a}", "ems", "E.{1}.{a}"),
    ("mqtt", "o/x", "ems", "FIXED"),  # one name alone
]


@pytest.mark.parametrize(("source", "pattern", "target", "template"), INJECTIVE)
def test_an_injective_template_is_proved(
    source: str, pattern: str, target: str, template: str | None
) -> None:
    assert rules(route(source, pattern, (target, template))) == []


def test_replaced_characters_are_not_injective() -> None:
    one = route("mqtt", "o/{a}", ("ems", "E.{a}"), escape=OnUnmappable.REPLACE)

    assert only(findings(one), "not-injective").example == ("o/x.x", "o/x-x")
    assert rules(route("mqtt", "o/{a}", ("ems", "E.{a}"), escape=OnUnmappable.REJECT)) == []


@pytest.mark.parametrize(
    ("source", "pattern", "exclude", "example"),
    [
        ("smf", "o/red*", [], ("o/redx.x", "o/redx-x")),
        ("smf", "red*/>", ["*/>"], None),
        ("smartsockets", "/o/r*d", [], ("/o/rx%2Exd", "/o/rx-xd")),
        ("smf", "o/{a}", ["o/x*"], ("o/.", "o/-")),
        ("smf", "o/r*/s", ["o/rx*/s"], ("o/r./s", "o/r-/s")),
        ("ibm", "o/{rest...}", ["+/+"], ("o/x/x.x", "o/x/x-x")),
        ("ibm", "o/#/{a}", ["#/x"], ("o/x.x/y", "o/x-x/y")),
    ],
)
def test_replaced_characters_are_found_in_a_part_of_the_names(
    source: str, pattern: str, exclude: list[str], example: tuple[str, str] | None
) -> None:
    one = route(source, pattern, ("ems", None), exclude=exclude, escape=OnUnmappable.REPLACE)

    found = [each.example for each in findings(one) if each.rule == "not-injective"]
    assert found == ([] if example is None else [example])


def test_a_declared_loss_is_a_note() -> None:
    found = findings(route("mqtt", "o/{a}", ("ems", "FIXED"), lossy=True))

    assert [(each.rule, each.severity) for each in found] == [("not-injective", "note")]


def test_an_exclude_can_remove_colliding_names() -> None:
    assert rules(route("mqtt", "o/#", ("ems", "FIXED"), exclude=["o/+/#"])) == []
    assert rules(route("smf", "o/{a}", ("ems", "E"), exclude=["o/*"])) == ["unreachable"]


def test_an_unused_named_capture_is_a_note_about_its_target() -> None:
    one = route("mqtt", "o/{a}/{b}/+", ("ems", "E.{a}.{b}.{3}"), ("ems-2", "E.{1}.{3}"))
    found = [each for each in findings(one, quiet=frozenset()) if each.rule == "capture-unused"]

    assert [(each.target, each.severity, each.text[:3]) for each in found] == [(1, "note", "{b}")]


def test_a_route_without_names_is_left_out_of_the_other_proofs() -> None:
    found = findings(route("mqtt", "a/+/b", ("ems", "E"), exclude=["a/#"]))

    assert [(each.rule, each.source, each.example) for each in found] == [
        ("unreachable", 0, ("a/x/b",))
    ]
    assert rules(route("mqtt", "a/#", ("ems", None), exclude=["a/+"])) == []


def test_several_excludes_together_may_leave_nothing() -> None:
    assert rules(route("ems", "a.>", ("mqtt", None), exclude=["a.*", "a.*.>"])) == ["unreachable"]
    assert rules(route("ems", "a.>", ("mqtt", None), exclude=["a.*", "a.*.*.>"])) == []


def test_an_exclude_that_excludes_nothing_is_a_warning() -> None:
    assert rules(route("mqtt", "a/#", ("ems", None), exclude=["b/#"])) == ["idle-exclude"]


NEVER = [("mqtt", "a/{x}", "ems", "$sys.{x}"), ("mqtt", "a/{x}", "rv", "_RV.{x}"),
         ("mqtt", "a/{x}", "ems", f"E.{'n' * 121}.{'m' * 120}.{{x}}")]  # fmt: skip


@pytest.mark.parametrize(("source", "pattern", "target", "template"), NEVER)
def test_a_target_that_refuses_every_name_is_an_error(
    source: str, pattern: str, target: str, template: str
) -> None:
    found = only(findings(route(source, pattern, (target, template))), "never-sent")

    assert found.severity == "error"
    assert found.example == ("a/x",)


# source, pattern, target, template, what the text says, lengths of the names
SIZES = [
    pytest.param(
        "mqtt",
        "o/{r...}",
        "ems",
        "E.{r...}",
        "past 246 characters (249 less 3 for 3 levels), 64 levels or 127 characters in one level",
        (246, 247),
        id="ems-keeps-a-part",
    ),
    pytest.param(
        "ems",
        "o.>",
        "smf",
        None,
        "past 85 characters with '漢'",
        (85, 86),
        id="bytes-of-characters",
    ),
    pytest.param(
        "ems",
        "o.{x}",
        "mqtt",
        "o/{x}",
        "",
        (),
        id="all-fit",
    ),
    pytest.param(
        "smf", "o/{r...}", "ems", "E.{r...}", "64 levels", (),
        id="levels",
    ),
    pytest.param(
        "mqtt", "o/{x}", "ems", "E.{x}", "past 127 characters in one level", (),
        id="one-level",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "pattern", "target", "template", "text", "sizes"), SIZES)
def test_the_edge_of_a_limit_is_shown(
    source: str,
    pattern: str,
    target: str,
    template: str | None,
    text: str,
    sizes: tuple[int, ...],
) -> None:
    every = findings(route(source, pattern, (target, template)), quiet=frozenset())
    found = [each for each in every if each.rule == "past-limit"]

    assert [each.severity for each in found] == ["warning"] * bool(text)
    for each in found:
        assert text in each.text
        assert tuple(map(len, each.example[: len(sizes)])) == sizes


def test_names_that_are_shortened_break_no_limit() -> None:
    one = route("mqtt", "o/{r...}", ("ems", "E.{r...}"), length=OnTooLong.SHORTEN)

    assert "past-limit" not in {each.rule for each in findings(one, quiet=frozenset())}


def test_a_wider_subscription_shows_a_name() -> None:
    found = findings(route("yami4", "a.{x}", ("mqtt", "a/{x}")), quiet=frozenset())

    assert only(found, "widened").example == ("a.x.x",)
    assert not any(
        each.rule == "widened"
        for each in findings(route("yami4", "a.{r...}", ("mqtt", None)), quiet=frozenset())
    )


FIRST = [
    pytest.param("mqtt", "a/{x}/{y}", "ems", "{x}.{y}", "escaped to '%24", id="ems-dollar"),
    pytest.param("mqtt", "a/{x}", "ems", "{x}.E", "refused (reserved)", id="ems-sys"),
    pytest.param("ems", "a.{x}", "rv", "{x}.E", "escaped to '%5F", id="rv-underscore"),
    pytest.param("ems", "a.{x}", "mqtt", "{x}/E", "no wildcard of mqtt matches", id="mqtt-dollar"),
    pytest.param("mqtt", "a/{x}", "smf", "{x}/E", "escaped to '%23P2P", id="smf-inbox"),
]


@pytest.mark.parametrize(("source", "pattern", "target", "template", "text"), FIRST)
def test_a_special_first_level_is_a_note_with_its_consequence(
    source: str, pattern: str, target: str, template: str, text: str
) -> None:
    found = findings(route(source, pattern, (target, template)), quiet=frozenset())

    assert text in only(found, "first-place").text


def test_a_fixed_first_level_has_no_finding() -> None:
    found = findings(route("mqtt", "a/{x}", ("ems", "E{x}.b")), quiet=frozenset({"past-limit"}))

    assert found == []


ALLOWED = [
    pytest.param("E.{x}", ("E.>",), None, id="a-prefix"),
    pytest.param("E.{x}", ("F.>", "E.*"), None, id="a-pattern"),
    pytest.param("{x}.E", ("E.>", "x.>"), ("a/y", "y.E"), id="publishers-choose"),
    pytest.param("E{x}.b", ("E.>",), ("a/x", "Ex.b"), id="a-prefix-is-of-levels"),
    pytest.param("E.{x}.{x}", ("E.*",), ("a/x", "E.x.x"), id="too-deep"),
]


INBOXES = [("fleet/{x}/{r...}", "fleet/>"), ("fleet/{x}", "fleet/*"), ("fleet/{x}", ">"),
           ("f{x}/{r...}", ">"), ("x{x}/y/{x}/{r...}", "x*/y/>")]  # fmt: skip


@pytest.mark.parametrize(("template", "allow", "example"), ALLOWED)
def test_names_stay_within_what_is_allowed(
    template: str, allow: tuple[str, ...], example: tuple[str, str] | None
) -> None:
    found = findings(route("mqtt", "a/{x}", ("ems", template)), allow=allow)

    assert [each.rule for each in found] == ["outside-allow"] * (example is not None)
    assert not found or found[0].example == example


@pytest.mark.parametrize(("template", "allow"), INBOXES)
def test_a_name_that_every_target_refuses_is_not_outside_of_allow(
    template: str, allow: str
) -> None:
    found = rules(route("mqtt", "a/{x}/{r...}", ("smf", template)), allow=[allow])

    assert not {"outside-allow", "unproven"} & set(found)


@pytest.mark.parametrize("name", ["a/%2523P2P/x", "a/x/%2523P2P"])
def test_a_name_with_an_inbox_level_is_refused(name: str) -> None:
    one = route("mqtt", "a/{x}/{r...}", ("smf", "fleet/{x}/{r...}"))
    found = translate_name(one, one.targets[0], parse_subject(name, one.dialect).levels)

    assert isinstance(found, RefusedName)
    assert found.error.rule == "inbox"


def test_names_that_are_not_allowed_are_left_out_of_the_other_proofs() -> None:
    routes = [
        route("mqtt", "a/{x}/{y}", ("ems", "{x}.{y}"), name="r"),
        route("mqtt", "b/{x}", ("ems", "F.{x}"), name="s"),
    ]
    limited = replace(routes[0].targets[0], allow=(parse_source("E.>", DIALECTS["ems"]),))
    routes[0] = replace(routes[0], targets=(limited,))

    assert rules(*routes) == ["outside-allow"]


def test_captures_of_other_tags_are_taken_as_given() -> None:
    yami, mqtt = DIALECTS["yami4"], DIALECTS["mqtt"]
    require_tags = parse_source("desk.{desk}", yami)
    one = route("yami4", "orders.{id}", ("mqtt", None))
    template = parse_template("o/{id}/{desk}", mqtt, one.source, require_tags=(require_tags,))
    tags = TagRule(TagMode.COMBINE, require_tags=(require_tags,))
    one = replace(one, tags=tags, targets=(replace(one.targets[0], templates=(template,)),))

    assert findings(one) == []


def test_the_tags_of_a_list_together_identify_a_name() -> None:
    assert rules(tagged("a.{x}", "b.{y}")) == []
    found = findings(tagged("a.{x}", "b.{x}"))

    assert [each.rule for each in found] == ["not-injective"]
    assert found[0].example == ("o/x/x", "o/x/y")


def test_findings_name_the_source_of_a_route_with_several() -> None:
    routes = [
        route("mqtt", "a/#", ("ems", None), name="r"),
        route("mqtt-2", "b/+", ("ems", None), name="r", exclude=["b/#"]),
    ]

    assert only(findings(*routes), "unreachable").source == 1


LIMITED = NameLimits(
    forbidden_characters=".",
    forbidden_first_levels=("$*", "admin"),
    allowed_first_levels=("$aws",),
    forbidden_patterns=("+/secret/#",),
)
BY_CHARACTER, BY_FIRST, BY_PATTERN = (
    "forbidden-character",
    "forbidden-first-level",
    "forbidden-pattern",
)
FORBIDDEN = [
    pytest.param("mqtt", "{r...}", "{r...}", [BY_CHARACTER, BY_FIRST, BY_PATTERN], id="rest"),
    pytest.param("mqtt", "a/{x}", "{x}/b", [BY_CHARACTER, BY_FIRST], id="level"),
    pytest.param(
        "rv", "a.{x}.{y}", "b/{x}/{y}", [BY_CHARACTER, BY_PATTERN], id="%2E-is-a-dot-there"
    ),
    pytest.param("mqtt", "a/{x}", "$aws/{x}", [BY_CHARACTER], id="allowed-first"),
    pytest.param("mqtt", "a/{x}", "b/{x|bucket:4}/secret", [], id="nothing-forbidden"),
]


@pytest.mark.parametrize(("source", "pattern", "template", "rules_broken"), FORBIDDEN)
def test_names_that_the_limits_of_an_endpoint_forbid_are_shown(
    source: str, pattern: str, template: str, rules_broken: list[str]
) -> None:
    one = route(source, pattern, ("mqtt-2", template))
    (target,) = one.targets
    renderer = replace(target.renderer, dialect=with_limits(target.renderer.dialect, LIMITED))
    one = replace(one, targets=(replace(target, renderer=renderer),))

    found = [each for each in findings(one) if each.rule == "forbidden-name"]

    broken = []
    for name in [name for each in found for name in each.example]:
        levels = parse_subject(name, one.dialect).levels
        refused = translate_name(one, one.targets[0], levels)
        assert isinstance(refused, RefusedName)
        broken.append(refused.error.rule)
    assert broken == rules_broken
    assert {each.severity for each in found} <= {"note"}
