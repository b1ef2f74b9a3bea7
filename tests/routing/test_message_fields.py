"""Names and header rules from fields of the message: `{property.x}` and `{payload.x.y}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gateway.errors import SubjectError
from gateway.model.message import DroppedPayload, Headers, Message, Payload, Value
from gateway.routing import message_fields
from gateway.routing.header_rules import parse_header_rules
from gateway.routing.json_payload import load_json
from gateway.routing.name_rules import NOT_RECORDED, RouteNames, to_routes, to_rules
from gateway.routing.route import Route
from gateway.routing.router import Delivery, Router
from gateway.translate.names import OnUnmappable
from gateway.translate.shorten import ShortNamesInMemory
from tests.model.test_memory_size import taken
from tests.proofs.routes import allowing, dialect_of, route

OPEN = {"mqtt": ["to/#"], "ems": ["TO.>"], "nats": ["to.>"], "rabbitmq": ["to.#"]}
OPEN |= {"smf": ["to/>"], "yami4": ["to.*"], "ibm": ["to/#"]}
DEEP = b'{"a": ' * 65 + b"1" + b"}" * 65


def made(one: Route, payload: Payload = b"", **properties: Value) -> Delivery:
    """Return the one copy of a message `o/m1` with this payload and these properties."""
    message = Message("o/m1", payload, Headers(properties=properties))
    (match,) = Router(one.dialect, [one]).match(message)
    (delivery,) = match.deliveries
    return delivery


def to(template: str, system: str = "mqtt") -> Route:
    return allowing(route("mqtt", "o/{m}", (system, template)), OPEN[system])


LEVELS = [
    pytest.param("to/{property.site}", b"", {"site": "hall 1"}, "to/hall 1", id="a property"),
    pytest.param("to/{property.a.b}", b"", {"a.b": "x"}, "to/x", id="a property with a dot"),
    pytest.param("to/{property.n}", b"", {"n": -7}, "to/-7", id="an integer"),
    pytest.param("to/{property.f}", b"", {"f": True}, "to/true", id="a boolean"),
    pytest.param("to/{payload.n}", b'{"n": 12}', {}, "to/12", id="a JSON integer"),
    pytest.param("to/{payload.n}", b'{"n": false}', {}, "to/false", id="a JSON boolean"),
    pytest.param("to/{payload.a.b}", b'{"a": {"b": "x"}}', {}, "to/x", id="an inner key"),
    pytest.param("to/{payload.a}", '{"a": "é"}', {}, "to/é", id="a text payload"),
    pytest.param("to/{payload.a.b}", {"a": {"b": 5}}, {}, "to/5", id="a map payload"),
    pytest.param("to/{m}-{payload.a}/x", b'{"a": 1}', {}, "to/m1-1/x", id="within a level"),
    pytest.param("to/{property.s|upper}", b"", {"s": "a"}, "to/A", id="a function"),
    pytest.param("to/{property.s|default:none}", b"", {}, "to/none", id="a default"),
    pytest.param("to/{property.s|default:a\\|b|upper}", b"", {}, "to/A|B", id="default, function"),
    pytest.param("to/{payload.s|default:none}", b"no JSON", {}, "to/none", id="default, no JSON"),
    pytest.param("to/{payload.s|default:none}", b"[1]", {}, "to/none", id="default, no object"),
    pytest.param("to/{payload.s|default:none}", b"\xff", {}, "to/none", id="default, no text"),
    pytest.param("to/{payload.s|default:none}", b'{"s": "x"}', {}, "to/x", id="default, unused"),
    pytest.param(
        "to/{property.s}", b"", {"s": "%2F"}, "to/%252F", id="text of the escape alphabet"
    ),
]


@pytest.mark.parametrize(("template", "payload", "properties", "name"), LEVELS)
def test_a_field_becomes_a_level(
    template: str, payload: Payload, properties: Mapping[str, Value], name: str
) -> None:
    delivery = made(to(template), payload, **properties)

    assert (delivery.address, str(delivery.rule)) == (name, "")


REFUSED = [
    pytest.param("{property.s}", b"", {}, "is missing", id="no such property"),
    pytest.param("{payload.s}", b"", {}, "is missing", id="no payload"),
    pytest.param("{payload.s}", b'{"t": 1}', {}, "is missing", id="no such key"),
    pytest.param("{payload.a.b}", b'{"a": 1}', {}, "is missing", id="a key of a number"),
    pytest.param("{payload.a.0}", b'{"a": [1]}', {}, "is missing", id="an item of a list"),
    pytest.param("{property.s}", b"", {"s": ""}, "is empty", id="empty"),
    pytest.param("{property.s}", b"", {"s": 1.5}, "is neither", id="a double"),
    pytest.param("{property.s}", b"", {"s": b"x"}, "is neither", id="bytes"),
    pytest.param("{property.s}", b"", {"s": None}, "is neither", id="null"),
    pytest.param("{property.s}", b"", {"s": 10**5000}, "is neither", id="a huge integer"),
    pytest.param("{payload.s|default:x}", b'{"s": null}', {}, "is neither", id="a JSON null"),
    pytest.param("{payload.s}", b'{"s": [1]}', {}, "is neither", id="a list"),
    pytest.param("{payload.s}", b'{"s": {"a": 1}}', {}, "is neither", id="an object"),
    pytest.param("{payload.s|default:x}", b'{"s": 1, "s": 2}', {}, "a key twice", id="a key twice"),
    pytest.param("{payload.a|default:x}", DEEP, {}, "deeper than 64", id="65 levels"),
    pytest.param("{payload.s}", b'{"s": 9223372036854775808}', {}, "64 bits", id="65 bits"),
    pytest.param("{payload.s}", b'{"s": "\\ud800"}', {}, "half a character", id="half a character"),
    pytest.param("{property.s}", b"", {"s": "a\0b"}, "control character", id="NUL"),
    pytest.param("{property.s}", b"", {"s": "a\nb"}, "control character", id="a line feed"),
    pytest.param("{property.s}", b"", {"s": "\x85"}, "control character", id="a C1 control"),
    pytest.param("{property.s}", b"", {"s": "x" * 65_536}, "is longer", id="65,536 bytes"),
    pytest.param("{property.s}", b"", {"s": "é" * 40_000}, "is longer", id="80,000 bytes"),
    pytest.param("{property.s|slice:0:0}", b"", {"s": "x"}, "is empty after", id="a slice"),
    pytest.param("{payload.s}", DroppedPayload(9), {}, "was not read", id="no kept payload"),
    pytest.param(
        "{payload.s}",
        b'{"s": "x"}' + b" " * (256 << 10),
        {},
        "262,144 are read",
        id="a long document",
    ),
]


@pytest.mark.parametrize(("field", "payload", "properties", "reason"), REFUSED)
def test_what_is_no_level_is_a_dead_letter_of_its_rule(
    field: str, payload: Payload, properties: Mapping[str, Value], reason: str
) -> None:
    delivery = made(to(f"to/{field}"), payload, **properties)

    assert (delivery.address, str(delivery.rule)) == ("", "field")
    assert reason in delivery.reason
    assert "xxx" not in delivery.reason  # never the value


@pytest.mark.parametrize("system", OPEN)
@pytest.mark.parametrize("escape", OnUnmappable)
def test_a_field_never_brings_a_separator_or_a_wildcard(system: str, escape: OnUnmappable) -> None:
    dialect = dialect_of(system)
    start = OPEN[system][0][:3]
    one = to(start + "{property.s}", system)
    renderer = replace(one.targets[0].renderer, on_unmappable=escape)
    one = replace(one, targets=(replace(one.targets[0], renderer=renderer),))

    for char in {dialect.separator, dialect.any_one, dialect.any_many}:
        assert made(one, s=f"a{char}b").rule == "field", char
    assert made(one, s="ab").address == start + "ab"


def test_limits_and_allow_hold_after_a_field() -> None:
    long = made(to("TO.{property.s}", "ems"), s="x" * 60_000)
    outside = made(to("{property.s}/x"), s="other")

    assert long.rule == "too-long"
    assert outside.rule == "not-allowed"


def test_the_payload_is_parsed_once_a_message_and_only_where_a_field_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts: list[str] = []

    def load(text: str) -> Value:
        texts.append(text)
        return load_json(text)

    monkeypatch.setattr(message_fields, "load_json", load)
    every = to("to/{payload.a}/{payload.b}/{property.c}")
    router = Router(every.dialect, [every, replace(to("to/{property.c}"), name="other")])

    router.match(Message("o/m1", b'{"a": 1, "b": 2}', Headers(properties={"c": 3})))
    made(to("to/{property.c}"), b"{}", c="x")

    assert len(texts) == 1


def test_a_message_without_the_field_of_one_target_reaches_the_others() -> None:
    ends = ("mqtt", "to/{property.s}"), ("mqtt-2", "to/{m}"), ("mqtt-3", "to/{payload.a}")
    one = allowing(route("mqtt", "o/{m}", *ends), ["to/#"])
    message = Message("o/m1", b'{"a": 1}')
    (match,) = Router(one.dialect, [one]).match(message)

    assert [each.address or str(each.rule) for each in match.deliveries] == [
        "field", "to/m1", "to/1",
    ]  # fmt: skip


def test_header_rules_take_fields_too() -> None:
    plain = route("mqtt", "o/{m}", ("mqtt-2", "to/{m}"))
    rules = parse_header_rules(
        maps={}, renames={}, drops=(), keeps=(), source=plain.source,
        sets={"kind": "{payload.kind|default:order}", "site": "{property.s}-{m}"},
    )  # fmt: skip
    one = replace(plain, targets=(replace(plain.targets[0], rules=rules),))

    delivery = made(one, b"", s="hall")
    headers = delivery.rules.apply(Headers(), 0)

    assert headers.properties == {"kind": "order", "site": "hall-m1"}
    assert delivery.fields == ""  # they are not part of the name
    assert made(one, b"").rule == "field"


WRONG = [
    pytest.param("to/{property.x...}", "one level", id="many levels"),
    pytest.param("to/{property.x|default:}", "not empty", id="an empty default"),
    pytest.param("to/{property.}", "{property.name}", id="no name"),
    pytest.param("to/{payload.a..b}", "{payload.key}", id="an empty key"),
    pytest.param("to/{m|default:x}", "unknown function 'default'", id="a default of a capture"),
    pytest.param("to/{property.x|join:-}", "any number of levels", id="a join"),
]


@pytest.mark.parametrize(("template", "reason"), WRONG)
def test_a_wrong_field_is_an_error(template: str, reason: str) -> None:
    with pytest.raises(SubjectError, match=reason):
        to(template)


def test_captures_may_be_called_property_and_payload() -> None:
    one = route("mqtt", "o/{property}/{payload...}", ("mqtt-2", "{property}/{payload...}"))

    assert not one.fields
    assert Router(one.dialect, [one])["o/a/b/c"][0].deliveries[0].address == "a/b/c"


def test_a_name_alone_says_that_the_message_is_absent() -> None:
    one = to("to/{property.s}")

    ((delivery,),) = ([*match.deliveries] for match in Router(one.dialect, [one])["o/m1"])

    assert delivery.rule == "field"
    assert "there is only a name" in delivery.reason


ROWS = [
    pytest.param("to/{property.s|upper}", {"s": "a"}, '{"property.s": "a"}', id="a value"),
    pytest.param("to/{property.s|default:d}", {}, '{"property.s": null}', id="a default"),
]


@pytest.mark.parametrize(("template", "properties", "fields"), ROWS)
def test_rules_of_names_make_the_name_again_from_the_fields_of_a_row(
    template: str, properties: Mapping[str, Value], fields: str
) -> None:
    one = to(template)
    delivery = made(one, b"", **properties)
    again = RouteNames(to_routes(json.loads(json.dumps(to_rules([one])))), ShortNamesInMemory())

    assert delivery.fields == fields
    assert again.names("r", delivery.label, "o/m1", fields) == [delivery.address]
    assert again.names("r", delivery.label, "o/m1") == [NOT_RECORDED]
    assert again.names("r", delivery.label, "o/m1", "damaged") == [NOT_RECORDED]
    assert again.names("r", delivery.label, "o/m1", '{"property.s": "b"}') != [delivery.address]


def test_a_redacted_property_is_not_recorded() -> None:
    one = replace(to("to/{property.secret}/{payload.a}"), archive_redact=("sec*",))

    assert made(one, b'{"a": 1}', secret="x").fields == ""  # noqa: S106  # no secret


def test_the_cache_of_fields_takes_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 4 << 20
    monkeypatch.setattr("gateway.routing.router.MAX_FIELDS_SIZE", limit)
    one = to("to/{property.s}")
    router = Router(one.dialect, [one])

    def fill() -> Router:
        for number in range(150):
            headers = Headers(properties={"s": "x" * 60_000 + str(number)})
            router.match(Message("o/m1", b"", headers))
        return router

    assert taken(fill) < 2 * limit


def test_equal_messages_share_one_match() -> None:
    one = to("to/{property.s}")
    router = Router(one.dialect, [one])
    first, again = (
        router.match(Message("o/m1", b"", Headers(properties={"s": "a"}))) for _ in "ab"
    )

    assert first is again


def test_tag_lists_take_fields() -> None:
    one = allowing(route("yami4", "o.{m}", ("mqtt", "to/{property.s}/{m}")), ["to/#"])
    message = Message("o.a,o.b", b"", Headers(properties={"s": "x"}))
    (match,) = Router(one.dialect, [one]).match(message)

    assert [each.address for each in match.deliveries] == ["to/x/a", "to/x/b"]
