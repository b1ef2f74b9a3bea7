"""For each proof mappings that fail it, with the example, and mappings that pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.proofs import Finding, prove, prove_inverse
from gateway.proofs.search.witness import Refused, attempt
from gateway.routing.captures import parse_source
from gateway.routing.route import Route
from gateway.routing.selectors.selector import parse_selector
from gateway.routing.tags import TagMode, TagRule
from gateway.routing.template import parse_template
from gateway.translate.names import Escape, Length
from tests.proofs.routes import findings, route, rules


def only(found: list[Finding], rule: str) -> Finding:
    (finding,) = [each for each in found if each.rule == rule]
    return finding


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
def test_a_template_that_keeps_names_apart_is_proven(
    source: str, pattern: str, target: str, template: str | None
) -> None:
    assert rules(route(source, pattern, (target, template))) == []


def test_replaced_characters_make_names_one() -> None:
    one = route("mqtt", "o/{a}", ("ems", "E.{a}"), escape=Escape.REPLACE)

    assert only(findings(one), "not-injective").example == ("o/x.x", "o/x-x")
    assert rules(route("mqtt", "o/{a}", ("ems", "E.{a}"), escape=Escape.REJECT)) == []


def test_a_loss_that_is_meant_is_a_note() -> None:
    found = findings(route("mqtt", "o/{a}", ("ems", "FIXED"), lossy=True))

    assert [(each.rule, each.severity) for each in found] == [("not-injective", "note")]


def test_an_exclude_can_take_away_what_collides() -> None:
    assert rules(route("mqtt", "o/#", ("ems", "FIXED"), exclude=["o/+/#"])) == []
    assert rules(route("smf", "o/{a}", ("ems", "E"), exclude=["o/*"])) == ["unreachable"]


def test_a_named_capture_that_is_not_used_is_noted_with_its_target() -> None:
    one = route("mqtt", "o/{a}/{b}/+", ("ems", "E.{a}.{b}.{3}"), ("ems-2", "E.{1}.{3}"))
    found = [each for each in findings(one, quiet=frozenset()) if each.rule == "capture-unused"]

    assert [(each.target, each.severity, each.text[:3]) for each in found] == [(1, "note", "{b}")]


# two routes, the rules, and the names of the first finding
PAIRS = [
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "E.{x}")),
        route("mqtt", "b/{x}", ("ems", "E.{x}"), name="s"),
        ["collision"],
        ("a/x", "b/x", "E.x"),
        id="two-names-become-one",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "E.{x}")),
        route("mqtt-2", "a/{x}", ("ems", "E.{x}"), name="s"),
        ["merged"],
        ("a/x", "a/x", "E.x"),
        id="one-name-of-two-brokers",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "E.{x}.p")),
        route("mqtt", "b/{x}", ("ems", "E.{x}.q"), name="s"),
        [],
        (),
        id="kept-apart-by-the-last-level",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "E.{x}-b")),
        route("mqtt", "b/{x}", ("ems", "E.a-{x}"), name="s"),
        ["collision"],
        ("a/a", "b/b", "E.a-b"),
        id="two-names-within-a-level",
    ),
    pytest.param(
        route("mqtt", "a/#", ("ems", None)),
        route("mqtt", "a/b/+", ("ems", None), name="s"),
        ["delivered-twice"],
        ("a/b/x", "a.b.x"),
        id="twice-under-one-name",
    ),
    pytest.param(
        route("mqtt", "a/#", ("ems", None), exclude=["a/b/#"]),
        route("mqtt", "a/b/#", ("ems", None), name="s"),
        [],
        (),
        id="divided-by-an-exclude",
    ),
    pytest.param(
        route("mqtt", "a/{x}/{y}", ("ems", "E.{x}.{y}")),
        route("mqtt", "a/{x}/{y}", ("ems", "E.{y}.{x}"), name="s"),
        ["delivered-twice"],
        ("a/x/x", "E.x.x"),
        id="twice-for-some-names-only",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "E.{x}")),
        route("mqtt", "a/{x}", ("ems", "F.{x}.G"), name="s"),
        ["copies"],
        ("a/x", "E.x", "F.x.G"),
        id="twice-under-two-names",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "E.{x}")),
        route("mqtt", "a/{x}", ("ems-2", "E.{x}"), name="s"),
        [],
        (),
        id="two-brokers",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "E.{x|upper}")),
        route("mqtt", "b/{x}", ("ems", "E.{x}"), name="s"),
        ["not-injective", "collision"],
        ("a/a", "a/A"),
        id="behind-a-function",
    ),
    pytest.param(
        route("mqtt", "{r...}", ("ems", "{r...}")),
        route("mqtt", "a/a/{r...}", ("ems", "{r...}.{r...}.{r...}"), name="s"),
        ["delivered-twice"],
        ("a/a/a", "a.a.a"),
        id="a-capture-that-stands-there-often",
    ),
]


@pytest.mark.parametrize(("one", "other", "expected", "example"), PAIRS)
def test_what_two_routes_do_at_one_broker(
    one: Route, other: Route, expected: list[str], example: tuple[str, ...]
) -> None:
    found = findings(one, other)

    assert [each.rule for each in found] == expected
    assert not found or found[0].example == example


def test_two_targets_of_a_route_are_a_pair_too() -> None:
    one = route("mqtt", "a/{x}", ("ems", "E.{x}"), ("ems", "E.{x}"))
    found = only(findings(one), "delivered-twice")

    assert (found.target, found.example) == (1, ("a/x", "E.x"))


def test_two_endpoints_of_one_broker_are_one() -> None:
    routes = [
        route("mqtt", "a/{x}", ("ems", "E.{x}"), name="r"),
        route("smf", "a/{x}", ("ems-2", "E.{x}"), name="s"),
    ]
    brokers = {"mqtt": "solace", "smf": "solace", "ems": "erp", "ems-2": "erp"}

    assert "delivered-twice" in {each.rule for each in prove(routes, brokers)}


RING = (
    route("mqtt", "a/{r...}", ("ems", "a.{r...}"), name="r"),
    route("ems", "a.{r...}", ("smf", "q/{r...}"), name="s"),
)
ROUNDS = [
    pytest.param(
        [*RING, route("smf", "q/{r...}", ("mqtt", "a/{r...}"), name="t")],
        "without end",
        ("a/x", "a.x", "q/x", "a/x"),
        id="three-brokers",
    ),
    pytest.param(
        [*RING, route("smf", "q/{r...}", ("mqtt", "a/x/{r...}"), name="t")],
        "changed every time",
        ("a/x", "a.x", "q/x", "a/x/x"),
        id="growing",
    ),
    pytest.param(
        [route("mqtt", "a/{x}", ("mqtt", "a/{x}"))], "without end", ("a/x", "a/x"), id="one-route"
    ),
    pytest.param(
        [
            route("mqtt", "a/{x}/{y}", ("ems", "b.{y}.{x}"), name="r"),
            route("ems", "b.red.{z}", ("mqtt", "a/{z}/red"), name="s"),
        ],
        "without end",
        ("a/x/red", "b.red.x", "a/x/red"),
        id="one-name-of-many",
    ),
    pytest.param(
        [
            route("mqtt", "a/{x|}".replace("|", ""), ("ems", "A.{x|upper}"), name="r"),
            route("ems", "A.{x}", ("mqtt", "a/{x}"), name="s"),
        ],
        "without end",
        ("a/x", "A.X", "a/X"),
        id="behind-a-function",
    ),
]


@pytest.mark.parametrize(("routes", "ending", "example"), ROUNDS)
def test_a_round_is_shown_hop_by_hop(
    routes: list[Route], ending: str, example: tuple[str, ...]
) -> None:
    found = only(findings(*routes), "cycle")

    assert found.severity == "error"
    assert ending in found.text
    assert found.example == example


NO_ROUNDS = [
    pytest.param([*RING], id="no-way-back"),
    pytest.param(
        [*RING, route("smf", "q/{r...}", ("mqtt", "b/{r...}"), name="t")], id="another-prefix"
    ),
    pytest.param(
        [*RING, route("smf", "q/{r...}", ("mqtt-2", "a/{r...}"), name="t")], id="another-broker"
    ),
    pytest.param(
        [
            route("mqtt", "a/{x}", ("ems", "a.{x}"), exclude=["a/back"]),
            route("ems", "a.{x}", ("mqtt", "a/back"), name="s", lossy=True),
        ],
        id="excluded",
    ),
    pytest.param(
        [
            route("smf", "{x}/{r...}", ("ems", "{x}.{r...}"), exclude=["back/>"]),
            route("ems", ">", ("smf", "back/{1}"), name="s"),
        ],
        id="everything-but-what-was-sent",
    ),
    pytest.param(
        [
            route("mqtt", "a/{x}/{y}", ("ems", "b.{y}.{x}"), name="r"),
            route("ems", "b.red.{z}", ("mqtt", "a/{z}/green/light"), name="s"),
        ],
        id="too-deep-to-come-back",
    ),
]


@pytest.mark.parametrize("routes", NO_ROUNDS)
def test_what_does_not_come_back_is_no_round(routes: list[Route]) -> None:
    assert {each.rule for each in findings(*routes)} <= {"not-injective"}


def test_a_message_that_comes_back_once_is_a_warning() -> None:
    found = findings(
        route("mqtt", "a/{x}/{y}", ("ems", "a.{x}.{y}"), name="r"),
        route("ems", "a.on.{y}", ("mqtt", "a/off/{y}"), name="s"),
    )

    assert [(each.rule, each.severity) for each in found] == [("cycle", "warning")]
    assert found[0].example == ("a/on/x", "a.on.x", "a/off/x")


def test_the_way_straight_back_is_no_round() -> None:
    there = route("mqtt", "a/{x}", ("ems", "a.{x}"), name="r", inverse="s")
    back = route("ems", "a.{x}", ("mqtt", "a/{x}"), name="s", inverse="r")

    assert findings(there, back) == []


def test_a_ring_of_ways_in_both_directions_is_a_round() -> None:
    ends = [("mqtt", "a/{x}"), ("ems", "a.{x}"), ("smf", "a/{x}")]
    routes: list[Route] = []
    for number, (source, target) in enumerate(zip(ends, [*ends[1:], ends[0]], strict=True)):
        there, back = f"r{number}", f"r{number}.back"
        routes.append(route(*source, target, name=there, inverse=back))
        routes.append(route(*target, source, name=back, inverse=there))

    assert {each.rule for each in findings(*routes)} == {"cycle", "merged"}


# forward, backward, the severity, and the names
INVERSES = [
    pytest.param(
        route("mqtt", "a/{x}/{y}", ("ems", "A.{x}.{y}")),
        route("ems", "A.{x}.{y}", ("mqtt", "a/{y}/{x}"), name="s"),
        "error",
        ("a/v1/v2", "A.v1.v2", "a/v2/v1"),
        id="another-order",
    ),
    pytest.param(
        route("mqtt", "a/{r...}", ("ems", "A.{r...}")),
        route("ems", "A.{r...}", ("mqtt", "a/{r...}"), name="s"),
        "warning",
        ("a", "A"),
        id="the-parent-level",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "A.{x}")),
        route("ems", "A.{x}", ("mqtt", "a/{x}"), name="s", exclude=["A.b"]),
        "warning",
        ("a/b", "A.b"),
        id="excluded-on-the-way-back",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "A.{x}")),
        route("ems", "A.{x}", ("mqtt", "a/{x|lower}"), name="s"),
        "error",
        None,
        id="a-function",
    ),
    pytest.param(
        route("mqtt", "a/{x}", ("ems", "A")),
        route("ems", "A", ("mqtt", "a/x"), name="s"),
        "error",
        None,
        id="lossy",
    ),
]


@pytest.mark.parametrize(("forward", "backward", "severity", "example"), INVERSES)
def test_a_name_that_does_not_come_back_as_itself_is_shown(
    forward: Route, backward: Route, severity: str, example: tuple[str, ...] | None
) -> None:
    found = prove_inverse(forward, backward)

    assert found is not None
    assert (found.rule, found.severity) == ("not-inverse", severity)
    assert example is None or found.example == example


INVERTED = [
    (("mqtt", "a/{x}/{y}"), ("ems", "{y}.A.{x}")),
    (("ems", "A.{x}.{r...}"), ("smf", "q/{x}/{r...}")),
    (("ems", "A.{x}"), ("ibm", "b/{x}")),
]


@pytest.mark.parametrize(("there", "back"), INVERTED)
def test_a_pair_that_inverts_itself_is_proven(
    there: tuple[str, str], back: tuple[str, str]
) -> None:
    forward = route(*there, back, name="r")
    backward = route(*back, there, name="s")

    assert prove_inverse(forward, backward) is None
    assert prove_inverse(backward, forward) is None


def test_a_route_that_leads_elsewhere_is_no_inverse() -> None:
    forward = route("mqtt", "a/{x}", ("ems", "A.{x}"))
    backward = route("ems", "A.{x}", ("smf", "a/{x}"), name="s")
    found = prove_inverse(forward, backward)

    assert found is not None
    assert found.text == "route 's' does not lead back to 'mqtt'"


def test_a_route_without_names_is_found_and_left_out_of_the_other_proofs() -> None:
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
        "247 characters become 247 characters, and 246 is the limit, ems keeps 3 of 249 for itself",
        (246, 247),
        id="ems-keeps-a-part",
    ),
    pytest.param(
        "ems",
        "o.>",
        "smf",
        None,
        "86 characters with '漢' become 252 bytes, and 250 is the limit; 85 characters",
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
        "smf", "o/{r...}", "ems", "E.{r...}", "65 levels become 65 levels, and 64 is the limit", (),
        id="levels",
    ),
    pytest.param(
        "mqtt", "o/{x}", "ems", "E.{x}", "130 characters become 128 characters in one level", (),
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
    one = route("mqtt", "o/{r...}", ("ems", "E.{r...}"), length=Length.SHORTEN)

    assert "past-limit" not in {each.rule for each in findings(one, quiet=frozenset())}


def test_a_subscription_that_brings_more_shows_a_name() -> None:
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
    pytest.param("ems", "a.{x}", "mqtt", "{x}/E", "no wildcard of mqtt reaches", id="mqtt-dollar"),
    pytest.param("mqtt", "a/{x}", "smf", "{x}/E", "escaped to '%23P2P", id="smf-inbox"),
]


@pytest.mark.parametrize(("source", "pattern", "target", "template", "text"), FIRST)
def test_what_becomes_of_a_first_character_is_noted(
    source: str, pattern: str, target: str, template: str, text: str
) -> None:
    found = findings(route(source, pattern, (target, template)), quiet=frozenset())

    assert text in only(found, "first-place").text


def test_a_fixed_first_level_leaves_nothing_to_publishers() -> None:
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
def test_what_every_target_refuses_cannot_leave_what_is_allowed(template: str, allow: str) -> None:
    found = rules(route("mqtt", "a/{x}/{r...}", ("smf", template)), allow=[allow])

    assert not {"outside-allow", "unproven"} & set(found)


@pytest.mark.parametrize("name", ["a/%2523P2P/x", "a/x/%2523P2P"])
def test_and_it_is_refused(name: str) -> None:
    one = route("mqtt", "a/{x}/{r...}", ("smf", "fleet/{x}/{r...}"))
    found = attempt(one, one.targets[0], parse_subject(name, one.dialect).levels)

    assert isinstance(found, Refused)
    assert found.error.rule == "inbox"


def test_what_is_not_allowed_counts_in_no_other_proof() -> None:
    routes = [
        route("mqtt", "a/{x}/{y}", ("ems", "{x}.{y}"), name="r"),
        route("mqtt", "b/{x}", ("ems", "F.{x}"), name="s"),
    ]
    limited = replace(routes[0].targets[0], allow=(parse_source("E.>", DIALECTS["ems"]),))
    routes[0] = replace(routes[0], targets=(limited,))

    assert rules(*routes) == ["outside-allow"]


def test_captures_of_other_tags_are_taken_as_given() -> None:
    yami, mqtt = DIALECTS["yami4"], DIALECTS["mqtt"]
    along = parse_source("desk.{desk}", yami)
    one = route("yami4", "orders.{id}", ("mqtt", None))
    template = parse_template("o/{id}/{desk}", mqtt, one.source, along=(along,))
    tags = TagRule(TagMode.COMBINE, along=(along,))
    one = replace(one, tags=tags, targets=(replace(one.targets[0], template=template),))

    assert findings(one) == []


def tagged(template: str, *others: str) -> Route:
    """A route to a tag list."""
    one = route("mqtt", "o/{x}/{y}", ("yami4", template))
    yami = DIALECTS["yami4"]
    also = tuple(parse_template(text, yami, one.source) for text in others)
    return replace(one, targets=(replace(one.targets[0], also=also),))


def test_the_tags_of_a_list_tell_names_apart_together() -> None:
    assert rules(tagged("a.{x}", "b.{y}")) == []
    found = findings(tagged("a.{x}", "b.{x}"))

    assert [each.rule for each in found] == ["not-injective"]
    assert found[0].example == ("o/x/x", "o/x/y")


def test_each_tag_of_a_list_may_meet_and_come_back() -> None:
    back = route("yami4", "b.{y}", ("mqtt", "o/back/{y}"), name="s")

    assert rules(tagged("a.{x}", "b.{y}"), back) == ["cycle"]


def test_selectors_make_a_doubt_of_an_error() -> None:
    one = route("mqtt", "a/#", ("ems", None), name="r")
    other = route("mqtt", "a/b", ("ems", None), name="s")
    some = [replace(one, selector=parse_selector("x = 1")), other]
    round_trip = [
        replace(one, selector=parse_selector("x = 1")),
        route("ems", "a.>", ("mqtt", None), name="s"),
    ]

    assert [(each.rule, each.severity) for each in findings(*some)] == [
        ("delivered-twice", "warning")
    ]
    assert [(each.rule, each.severity) for each in findings(*round_trip)] == [("cycle", "warning")]


def test_findings_name_the_source_of_a_route_with_several() -> None:
    routes = [
        route("mqtt", "a/#", ("ems", None), name="r"),
        route("mqtt-2", "b/+", ("ems", None), name="r", exclude=["b/#"]),
    ]

    assert only(findings(*routes), "unreachable").source == 1


def test_a_thousand_equal_routes_are_cut_short_and_say_so() -> None:
    routes = [route("mqtt", "a/#", ("ems", None), name=f"r{number}") for number in range(40)]
    found = findings(*routes)

    assert {each.rule for each in found} == {"delivered-twice", "more"}
    assert sum(each.rule == "delivered-twice" for each in found) <= 3 * len(routes)


def test_no_routes_have_no_findings() -> None:
    assert prove([], {"mqtt": "b"}) == []
