"""Proofs about several routes: mappings that fail with their example, and others that pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.proofs import prove, prove_inverse
from gateway.routing.route import Route
from gateway.routing.selectors.selector import parse_selector
from tests.proofs.routes import findings, only, route, rules, tagged

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
def test_two_routes_to_one_broker_have_the_expected_findings(
    one: Route, other: Route, expected: list[str], example: tuple[str, ...]
) -> None:
    found = findings(one, other)

    assert [each.rule for each in found] == expected
    assert not found or found[0].example == example


def test_two_targets_of_one_route_are_compared() -> None:
    one = route("mqtt", "a/{x}", ("ems", "E.{x}"), ("ems", "E.{x}"))
    found = only(findings(one), "delivered-twice")

    assert (found.target, found.example) == (1, ("a/x", "E.x"))


def test_two_endpoints_of_one_broker_count_as_one() -> None:
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
CYCLES = [
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


@pytest.mark.parametrize(("routes", "ending", "example"), CYCLES)
def test_a_cycle_is_shown_hop_by_hop(
    routes: list[Route], ending: str, example: tuple[str, ...]
) -> None:
    found = only(findings(*routes), "cycle")

    assert found.severity == "error"
    assert ending in found.text
    assert found.example == example


NO_CYCLES = [
    pytest.param([*RING], id="no-reverse-route"),
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


@pytest.mark.parametrize("routes", NO_CYCLES)
def test_names_that_do_not_come_back_are_no_cycle(routes: list[Route]) -> None:
    assert {each.rule for each in findings(*routes)} <= {"not-injective"}


def test_a_message_that_comes_back_once_is_a_warning() -> None:
    found = findings(
        route("mqtt", "a/{x}/{y}", ("ems", "a.{x}.{y}"), name="r"),
        route("ems", "a.on.{y}", ("mqtt", "a/off/{y}"), name="s"),
    )

    assert [(each.rule, each.severity) for each in found] == [("cycle", "warning")]
    assert found[0].example == ("a/on/x", "a.on.x", "a/off/x")


def test_a_route_and_its_inverse_are_no_cycle() -> None:
    there = route("mqtt", "a/{x}", ("ems", "a.{x}"), name="r", inverse="s")
    back = route("ems", "a.{x}", ("mqtt", "a/{x}"), name="s", inverse="r")

    assert findings(there, back) == []


def test_three_routes_in_both_directions_are_a_cycle() -> None:
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
        id="excluded-by-the-inverse",
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
def test_a_route_and_its_inverse_are_proved(there: tuple[str, str], back: tuple[str, str]) -> None:
    forward = route(*there, back, name="r")
    backward = route(*back, there, name="s")

    assert prove_inverse(forward, backward) is None
    assert prove_inverse(backward, forward) is None


def test_a_route_to_another_endpoint_is_no_inverse() -> None:
    forward = route("mqtt", "a/{x}", ("ems", "A.{x}"))
    backward = route("ems", "A.{x}", ("smf", "a/{x}"), name="s")
    found = prove_inverse(forward, backward)

    assert found is not None
    assert found.text == "route 's' does not lead back to 'mqtt'"


def test_each_tag_of_a_list_may_be_part_of_a_cycle() -> None:
    back = route("yami4", "b.{y}", ("mqtt", "o/back/{y}"), name="s")

    assert rules(tagged("a.{x}", "b.{y}"), back) == ["cycle"]


def test_selectors_turn_an_error_into_a_warning() -> None:
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


def test_many_equal_routes_report_some_findings_and_that_there_are_more() -> None:
    routes = [route("mqtt", "a/#", ("ems", None), name=f"r{number}") for number in range(40)]
    found = findings(*routes)

    assert {each.rule for each in found} == {"delivered-twice", "more"}
    assert sum(each.rule == "delivered-twice" for each in found) <= 3 * len(routes)


@pytest.mark.parametrize(
    ("lossy", "hint"),
    [
        (True, "nothing to do when what the notes above say is wanted"),
        (False, "mend the findings above, then check again"),
    ],
)
def test_more_findings_are_to_be_mended_unless_all_are_notes(*, lossy: bool, hint: str) -> None:
    routes = [
        route("mqtt", f"{number}/{{x}}", ("ems", "E.{x}"), name=f"r{number}", lossy=lossy)
        for number in range(6)
    ]

    found = [each for each in findings(*routes) if each.rule == "more"]

    assert found
    assert {each.hint for each in found} == {hint}


def test_no_routes_have_no_findings() -> None:
    assert prove([], {"mqtt": "b"}) == []
