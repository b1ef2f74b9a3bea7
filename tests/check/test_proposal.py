"""The pattern and template that are proposed for a name and a wanted one."""

from __future__ import annotations

import pytest

from gateway.check.proposal import Proposal, propose
from gateway.dialects.registry import find_dialect
from gateway.errors import GatewayError
from gateway.translate.names import Renderer

PROPOSALS = [
    (
        "mqtt shop/orders/emea/4711",
        "ems ORDERS.emea.4711",
        "shop/orders/{rest...} ORDERS.{rest...}",
    ),
    ("mqtt plant/hall/v1.2/load", "ems S.hall.v1%2E2.load", "plant/{rest...} S.{rest...}"),
    (
        "mqtt plant/hall-1/motor/heat",
        "yami4 heat.hall-1.motor",
        "plant/{level2}/{level3}/{level4} {level4}.{level2}.{level3}",
    ),
    ("ems A.b.c", "mqtt c/b/A", "{level1}.{level2}.{level3} {level3}/{level2}/{level1}"),
    ("mqtt a/b", "nats x.y", "a/b x.y"),
    ("ems orders.new", "ems queue:ORDERS.NEW", "orders.new queue:ORDERS.NEW"),
    ("mqtt a//b/c", "ems X.%-.b.c", "a/{rest...} X.{rest...}"),
    ("mqtt a/b/c", "ems a.b.c", "{level1}/{rest...} {level1}.{rest...}"),
    ("smartsockets /a/b/c", "mqtt x/b/c", "/a/{rest...} x/{rest...}"),
    ("ems queue:A.b.c", "mqtt q/b/c", "queue:A.{rest...} q/{rest...}"),
    ("mqtt a/x/a", "nats y.a.x.a", "{level1}/{rest...} y.{level1}.{rest...}"),
]


def proposed(name: str, wanted: str) -> Proposal:
    source, _, name = name.partition(" ")
    target, _, wanted = wanted.partition(" ")
    return propose(name, wanted, find_dialect(source), Renderer(find_dialect(target)))


@pytest.mark.parametrize(("name", "wanted", "texts"), PROPOSALS)
def test_the_proposal_captures_the_levels_that_both_names_have(
    name: str, wanted: str, texts: str
) -> None:
    found = proposed(name, wanted)

    assert found == Proposal(*texts.split())
    assert found.takes_others == ("{" in texts)


def test_a_level_that_is_wanted_twice_has_no_way_back() -> None:
    found = proposed("mqtt site-4/x", "mqtt x/site-4/x")

    assert found.template == "{level2}/{level1}/{level2}"
    assert "'level2' names two captures" in found.why_not_back


@pytest.mark.parametrize(
    ("name", "wanted", "why"),
    [
        ("mqtt a/{b}", "ems a.b", "cannot have braces"),
        ("mqtt a/+", "ems a.b", "'+' is a wildcard"),
        ("mqtt a/b", "ems A.>", "'>' is a wildcard"),
    ],
)
def test_no_template_is_proposed_for_what_is_no_name(name: str, wanted: str, why: str) -> None:
    with pytest.raises(GatewayError, match=why.replace("+", r"\+")):
        proposed(name, wanted)


def test_equal_levels_of_the_longest_name_are_used_one_after_the_other() -> None:
    levels = ["a"] * 60

    found = proposed("mqtt " + "/".join(levels), "ems " + "X." + ".".join([*levels, "y"]))

    assert found.pattern == "/".join(f"{{level{at}}}" for at in range(1, 61))
    assert not found.why_not_back
