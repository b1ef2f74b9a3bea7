"""Proofs over names with fields of the message, each of which counts as any level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.proofs.finding import RouteFinding
from gateway.routing.payload_pick import parse_pick
from gateway.routing.route import Route
from tests.proofs.routes import allowing, findings, only, route, rules


def to(template: str, allow: Sequence[str], name: str = "r", pattern: str = "o/{m}") -> Route:
    return allowing(route("mqtt", pattern, ("mqtt-2", template), name=name), allow)


def test_a_name_with_a_field_is_never_injective_and_says_so() -> None:
    for template in ("to/{m}/{property.s}", "to/{payload.a|upper}/{m}"):
        found = only(findings(to(template, ["to/#"])), "not-injective")

        assert found.severity == "note"
        assert "the message brings {p" in found.text
        assert "lossy" in found.hint


def test_a_field_may_have_any_length() -> None:
    found = only(findings(to("to/{property.s}", ["to/#"]), quiet=frozenset()), "past-limit")

    assert "{property.s} may make names past the limits of" in found.text


ALLOWED = [
    pytest.param("to/{property.s}", ["to/#"], [], id="all values"),
    pytest.param("{property.s}/{m}", ["to/#", "a/+"], [], id="some values"),
    pytest.param("to/{property.s}", ["a/#"], ["outside-allow"], id="no value"),
    pytest.param("{m}/{property.s}", ["a/#"], ["outside-allow"], id="no value for a name"),
    pytest.param("a{property.s}", ["ab", "ac"], [], id="a part of a level"),
    pytest.param("{property.s}/{property.s}", ["a/a"], [], id="one field twice"),
    pytest.param("{property.s}/{property.s}", ["a/b"], ["outside-allow"], id="never unequal"),
    pytest.param("{property.s}/{property.t}", ["a/b"], [], id="two fields"),
]


@pytest.mark.parametrize(("template", "allow", "expected"), ALLOWED)
def test_a_name_that_no_field_makes_an_allowed_one_is_an_error(
    template: str, allow: Sequence[str], expected: Sequence[str]
) -> None:
    found = rules(to(template, allow))

    assert [each for each in found if each != "not-injective"] == expected


def test_a_capture_in_a_set_of_the_payload_is_used() -> None:
    plain = route("mqtt", "o/{m}", ("mqtt-2", "to"), lossy=True)
    conversion = parse_pick(
        pick=["a"], sets={"m": "{m}"}, max_size=9, encoding="utf-8", source=plain.source
    )
    picking = replace(plain, targets=(replace(plain.targets[0], conversion=conversion),))

    assert "capture-unused" in [each.rule for each in findings(plain, quiet=frozenset())]
    assert "capture-unused" not in [each.rule for each in findings(picking, quiet=frozenset())]


def overlapping(*routes: Route) -> list[RouteFinding]:
    return [each for each in findings(*routes) if each.rule != "not-injective"]


OVERLAPS = [
    pytest.param("to/fixed", ["delivered-twice"], id="a fixed name"),
    pytest.param("to/{property.t}", ["delivered-twice"], id="another field"),
    pytest.param("to/{m}", ["delivered-twice"], id="a capture"),
    pytest.param("to/a-{m}", ["delivered-twice"], id="a part of a level"),
    pytest.param("to/x/{m}", ["copies"], id="another depth"),
    pytest.param("from/{m}", ["copies"], id="another beginning"),
]


TWICE = [
    pytest.param("to/a/a", ["delivered-twice"], id="equal levels"),
    pytest.param("to/a/{m}", ["delivered-twice"], id="a capture"),
    pytest.param("to/a{m}/ab", ["delivered-twice"], id="a part of a level"),
    pytest.param("to/a/b", ["copies"], id="unequal levels"),
    pytest.param("to/a/b{m}", ["copies"], id="an unequal part"),
]


@pytest.mark.parametrize(("template", "expected"), TWICE)
@pytest.mark.parametrize("turned", [False, True])
def test_a_field_that_stands_twice_has_one_text(
    template: str, expected: Sequence[str], *, turned: bool
) -> None:
    one = to("to/{property.s}/{property.s}", ["to/#"])
    other = to(template, ["#"], name="other")

    found = overlapping(*((other, one) if turned else (one, other)))

    assert [each.rule for each in found] == expected


@pytest.mark.parametrize(("template", "expected"), OVERLAPS)
@pytest.mark.parametrize("turned", [False, True])
def test_a_message_may_bring_the_name_of_another_route(
    template: str, expected: Sequence[str], *, turned: bool
) -> None:
    one, other = to("to/{property.s}", ["to/#"]), to(template, ["#"], name="other")

    found = overlapping(*((other, one) if turned else (one, other)))

    assert [each.rule for each in found] == expected


def test_two_names_may_collide_by_a_field() -> None:
    one = to("to/{property.s}", ["to/#"], pattern="a/{m}")
    other = to("to/{m}", ["to/#"], name="other", pattern="b/{m}")

    found = only(findings(one, other), "collision")

    assert (found.severity, found.example[0][:2], found.example[1][:2]) == ("warning", "a/", "b/")


def test_only_allowed_names_collide() -> None:
    one = to("{property.s}/x", ["to/#"], pattern="a/{m}")
    other = to("elsewhere/{m}", ["#"], name="other", pattern="b/{m}")

    assert overlapping(one, other) == []


@pytest.mark.parametrize("allow", [["to/#", "elsewhere/+"], ["elsewhere/+", "to/#"]])
def test_each_allowed_pattern_is_proved_apart(allow: Sequence[str]) -> None:
    one = to("{property.s}/x", allow, pattern="a/{m}")
    other = to("elsewhere/{m}", ["#"], name="other", pattern="b/{m}")

    assert "collision" in [each.rule for each in overlapping(one, other)]
    assert "collision" in [each.rule for each in overlapping(other, one)]
    back = allowing(route("mqtt", "to/{m}", ("mqtt", "{property.s}/x")), allow)
    assert "cycle" in [each.rule for each in overlapping(back)]


CYCLES = [
    pytest.param("o/{property.s}", ["#"], ["cycle"], id="a field brings it back"),
    pytest.param("{property.s}/m", ["#"], ["cycle"], id="a first level brings it back"),
    pytest.param("{property.s}/m", ["to/#"], [], id="allow keeps it away"),
    pytest.param("to/{property.s}", ["#"], [], id="the template keeps it away"),
    pytest.param("{property.s}/{property.s}", ["#"], ["cycle"], id="one field twice"),
]


@pytest.mark.parametrize(("template", "allow", "expected"), CYCLES)
def test_a_message_may_come_back_by_a_field(
    template: str, allow: Sequence[str], expected: Sequence[str]
) -> None:
    one = allowing(route("mqtt", "o/{m}", ("mqtt", template)), allow)

    found = overlapping(one)

    assert [each.rule for each in found] == expected


def test_a_message_may_come_back_through_two_routes() -> None:
    forth = allowing(route("mqtt", "o/{m}", ("ems", "A.{property.s}.x")), [">"])
    back = allowing(route("ems", "A.b.{m}", ("mqtt", "o/{property.t}"), name="back"), ["#"])

    found = only(findings(forth, back), "cycle")

    assert found.severity == "error"
    assert "'A.b.x'" in found.text


def test_a_field_that_stands_twice_brings_no_unequal_levels_back() -> None:
    for template, cycles in (
        ("{property.s}/{property.s}/x", []),
        ("{property.s}/{property.t}/x", ["cycle"]),
    ):
        one = allowing(route("mqtt", "a/b/{m}", ("mqtt", template)), ["#"])
        assert [each.rule for each in overlapping(one)] == cycles
