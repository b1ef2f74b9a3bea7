from __future__ import annotations

import pytest

from gateway.dialects.registry import DIALECTS
from gateway.errors import LimitError, TranslationError
from gateway.translate.subscriptions import Covering, translate_pattern

EXACT = [
    ("mqtt", "ems", "orders/#", ["orders", "orders.>"]),
    ("mqtt", "yami4", "orders/#", ["orders", "orders.*", "orders."]),
    ("mqtt", "smf", "#", [">"]),
    ("mqtt", "smf", "a/+", ["a/*"]),
    ("mqtt", "smf", "+/#", [">"]),
    ("mqtt", "ibm", "a/+/#", ["a/+/#"]),
    ("mqtt", "ems", "$SYS/#", ["%24SYS", "%24SYS.>"]),
    ("ems", "mqtt", ">", ["#"]),
    ("ems", "rv", "a.*.>", ["a.*.>"]),
    ("ems", "smartsockets", "foo.*.>", ["/foo/*/..."]),
    ("ems", "mqtt", "a/b.*", ["a%2Fb/+"]),
    ("ems", "yami4", "a.*.b", ["a.*.b"]),
    ("ibm", "mqtt", "USA/#", ["USA/#"]),
    ("ibm", "mqtt", "a/#/+/#", ["a/+/#"]),
    ("ibm", "ems", "a/#/+", ["a.>"]),
    ("ibm", "ems", "#/#", [">"]),
    ("ems", "rabbitmq", "orders.>", ["orders.*.#"]),
    ("ems", "rabbitmq", ">", ["#"]),
    ("mqtt", "rabbitmq", "a//b/#", ["a..b.#"]),
    ("mqtt", "rabbitmq", "a.*/+", ["a%2E*.*"]),
    ("ibm", "rabbitmq", "a/#/+/#/b", ["a.*.#.b"]),
    ("rabbitmq", "ibm", "#.a.#", ["#/a/#"]),
    ("rabbitmq", "mqtt", "a.*.#", ["a/+/#"]),
    ("rabbitmq", "nats", "a.#", ["a", "a.>"]),
    ("rabbitmq", "ems", "a.#.*", ["a.>"]),
    ("smf", "smartsockets", "red*/a", ["/red*/a"]),
    ("yami4", "ems", "a*c", ["a%2Ac"]),  # it selects nothing but itself
    ("yami4", "mqtt", "a,b,a", ["a", "b"]),
    ("yami4", "mqtt", "*", ["#"]),
    ("yami4", "ems", "*", [">"]),
]

WIDER = [
    ("ems", "mqtt", "orders.>", ["orders/#"], "not 'orders' itself"),
    ("ems", "mqtt", "a.*.>", ["a/+/#"], "has more than 2 elements"),
    ("ems", "yami4", "orders.*", ["orders.*", "orders."], "has 2 components"),
    ("mqtt", "ems", "#", [">"], "does not begin with '$'"),
    ("mqtt", "ems", "+/a", ["*.a"], "does not begin with '$'"),
    ("mqtt", "smf", "a//b", ["a/*/b"], "level 2 is ''"),
    ("mqtt", "smf", "a*b/c", ["a*/c"], "level 1 is 'a*b'"),
    ("mqtt", "smf", "a/>", ["a/*"], "level 2 is '>'"),
    ("mqtt", "yami4", "a*/b", ["a*.b"], "is 'a*.b'"),
    ("smf", "mqtt", "red*", ["+"], "level 1 begins with 'red'"),
    ("smf", "yami4", "red*", ["red*", "red"], "has 1 components"),
    ("smartsockets", "ems", "/foo/b*z/baz", ["foo.*.baz"], "token 2 matches 'b*z'"),
    ("smartsockets", "smf", "/foo/b*z", ["foo/b*"], "token 2 matches 'b*z'"),
    ("ibm", "mqtt", "#/Results", ["#"], "from level 1 on matches '#/Results'"),
    ("ibm", "ems", "a/#/b", ["a.>"], "from level 2 on matches '#/b'"),
    ("rabbitmq", "mqtt", "a.#.b", ["a/#"], "from word 2 on matches '#.b'"),
    ("rabbitmq", "mqtt", "#.b", ["#"], "from word 1 on matches '#.b'"),
    ("rabbitmq", "nats", "a.#.b.*.#.c", ["a.*.*.>"], "from word 2 on matches '#.b.*.#.c'"),
    ("yami4", "ems", "a*", [">"], "begins with 'a' and goes on"),
    ("yami4", "ems", "a.*", ["a.>"], "begins with 'a.' and goes on"),
    ("yami4", "smf", "a*,b.*.c", ["a*", "a*/>", "b/*/c"], "yami4 'a*,b.*.c' selects it"),
]

UNCOVERED = [
    ("smf", "mqtt", "$SYS*/x", "hidden-first"),
    ("smf", "mqtt", "$share/x", "shared-subscription"),
    ("ibm", "ems", "$sys/#", "reserved"),
    ("ibm", "smf", "%23P2P/#", "inbox"),
]


def _cover(source: str, target: str, pattern: str) -> Covering:
    return translate_pattern(pattern, DIALECTS[source], DIALECTS[target])


@pytest.mark.parametrize(("source", "target", "pattern", "patterns"), EXACT)
def test_a_subscription_has_an_exact_cover(
    source: str, target: str, pattern: str, patterns: list[str]
) -> None:
    covering = _cover(source, target, pattern)

    assert list(covering.patterns) == patterns
    assert covering.exact


@pytest.mark.parametrize(("source", "target", "pattern", "patterns", "residual"), WIDER)
def test_a_wider_cover_comes_with_a_residual(
    source: str, target: str, pattern: str, patterns: list[str], residual: str
) -> None:
    covering = _cover(source, target, pattern)

    assert list(covering.patterns) == patterns
    assert not covering.exact
    assert residual in covering.residual


@pytest.mark.parametrize(("source", "target", "pattern", "rule"), UNCOVERED)
def test_a_subscription_without_a_cover_is_refused(
    source: str, target: str, pattern: str, rule: str
) -> None:
    with pytest.raises(TranslationError) as caught:
        _cover(source, target, pattern)

    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("source", "target", "pattern", "name", "delivered"),
    [
        ("mqtt", "ems", "a/#", "a", True),
        ("mqtt", "ems", "a/#", "a/b/c", True),
        ("ems", "mqtt", "orders.>", "orders", False),
        ("ems", "mqtt", "orders.>", "orders.x", True),
        ("mqtt", "ibm", "#", "$SYS/x", False),
        ("smf", "mqtt", "a/red*", "a/blue", False),
        ("yami4", "mqtt", "a.*,b", "x,b", True),
        ("yami4", "mqtt", "a*c,b*d", "a*c,b*d", True),  # the whole lists are equal
        ("yami4", "mqtt", "a*c,b*d", "a*c", False),
    ],
)
def test_delivery(source: str, target: str, pattern: str, name: str, delivered: bool) -> None:
    assert _cover(source, target, pattern).delivers(name) is delivered


def test_a_name_that_wildcards_exclude_is_refused_and_listed_in_omits() -> None:
    covering = _cover("ems", "mqtt", ">")

    assert covering.exact
    assert covering.omits == "names that begin with '%24': mqtt keeps them from wildcards"
    with pytest.raises(TranslationError, match="subscribe to it in full") as caught:
        covering.delivers("%24SYS.x")
    assert caught.value.rule == "hidden"
    assert _cover("ems", "mqtt", "%24SYS.>").delivers("%24SYS.x")


def test_a_subscription_past_a_limit_is_refused() -> None:
    with pytest.raises(LimitError, match="is 65 levels, limit 64"):
        _cover("mqtt", "ems", "a/" * 64 + "#")
