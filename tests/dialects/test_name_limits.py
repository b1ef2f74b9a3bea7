"""Limits of names at one broker: figures, forbidden names, and the brokers known by name."""

from __future__ import annotations

import re

import pytest

from gateway.dialects.base import check_name, parse_subject, render_subject
from gateway.dialects.brokers import BROKERS, dialect_at, with_limits
from gateway.dialects.name_limits import NameLimits
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError, LimitError, SubjectError, TranslationError
from gateway.model.subject import Subject
from gateway.translate.names import OnTooLong, OnUnmappable, Renderer, Translator

MQTT = DIALECTS["mqtt"]
REFUSED = [
    (NameLimits(forbidden_characters=". "), "a/v1.2", "forbidden-character"),
    (NameLimits(forbidden_characters=". "), "a b", "forbidden-character"),
    (NameLimits(forbidden_first_levels=("admin",)), "admin/x", "forbidden-first-level"),
    (NameLimits(forbidden_first_levels=("admin",)), "admin", "forbidden-first-level"),
    (NameLimits(forbidden_first_levels=("$*",)), "$x/y", "forbidden-first-level"),
    (NameLimits(forbidden_patterns=("a/+/c",)), "a/b/c", "forbidden-pattern"),
    (NameLimits(forbidden_patterns=("a/#", "b")), "a", "forbidden-pattern"),
    (NameLimits(), "$SYS/broker/x", "reserved"),
    (NameLimits(), "$CONTROL/dynamic-security/v1", "reserved"),
    (NameLimits(), "$share/group/x", "reserved"),
]
TAKEN = [
    (NameLimits(forbidden_characters=". "), "a/b"),
    (NameLimits(forbidden_first_levels=("admin",)), "admins/x"),
    (NameLimits(forbidden_first_levels=("admin",)), "x/admin"),
    (NameLimits(forbidden_first_levels=("$*",)), "x/$y"),
    (NameLimits(forbidden_first_levels=("$*",), allowed_first_levels=("$aws",)), "$aws/x"),
    (NameLimits(forbidden_patterns=("a/+/c",)), "a/b/c/d"),
    (NameLimits(), "$SYSTEM/x"),
    (NameLimits(), "a/$share/x"),
]


@pytest.mark.parametrize(("limits", "name", "rule"), REFUSED)
@pytest.mark.parametrize("on_unmappable", OnUnmappable)
@pytest.mark.parametrize("on_too_long", OnTooLong)
def test_a_forbidden_name_is_refused_by_its_rule(
    limits: NameLimits,
    name: str,
    rule: str,
    on_unmappable: OnUnmappable,
    on_too_long: OnTooLong,
) -> None:
    renderer = Renderer(with_limits(MQTT, limits), on_unmappable, on_too_long)

    with pytest.raises(TranslationError) as refusal:
        renderer.render(parse_subject(name, MQTT))

    assert (refusal.value.rule, refusal.value.text) == (rule, name)


@pytest.mark.parametrize(("limits", "name"), TAKEN)
def test_other_names_pass(limits: NameLimits, name: str) -> None:
    assert render_subject(parse_subject(name, MQTT), with_limits(MQTT, limits)) == name


def test_a_translator_asks_for_the_names_that_need_no_escape_too() -> None:
    translator = Translator(DIALECTS["ibm"], Renderer(dialect_at("nats-mqtt-2.9")))

    assert translator.name("a/b") == "a/b"
    with pytest.raises(TranslationError, match=r"nats-mqtt-2\.9: 'a/b c': .* forbid ' '"):
        translator.name("a/b c")


def test_a_name_is_compared_as_the_broker_receives_it() -> None:
    ems = with_limits(DIALECTS["ems"], NameLimits(forbidden_characters="%"))

    with pytest.raises(TranslationError, match="'%'"):
        render_subject(Subject(("a.b",)), ems)  # a%2Eb there


def test_names_that_are_received_are_not_refused() -> None:
    strict = with_limits(MQTT, NameLimits(forbidden_characters="."))

    assert parse_subject("a.b", strict) == Subject(("a.b",))


def test_figures_are_lower_limits() -> None:
    hosted = with_limits(MQTT, NameLimits(levels=8, bytes=256))

    check_name("a/" * 7 + "a", hosted)
    with pytest.raises(SubjectError, match="is 9 levels, limit 8"):
        check_name("a/" * 8 + "a", hosted)
    with pytest.raises(LimitError, match="is 258 bytes, limit 256"):
        render_subject(Subject(("é" * 129,)), hosted)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (NameLimits(levels=0), "below 1"),
        (NameLimits(forbidden_characters="./"), "`forbidden_characters` has the separator"),
        (NameLimits(forbidden_patterns=("a/#/b",)), "not last"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: NameLimits, text: str) -> None:
    with pytest.raises(GatewayError, match=f"mqtt: .*{re.escape(text)}"):
        with_limits(MQTT, limits)


def test_equal_limits_give_one_dialect() -> None:
    assert with_limits(MQTT, NameLimits(levels=8)) is with_limits(MQTT, NameLimits(levels=8))
    assert with_limits(DIALECTS["ems"], NameLimits()) is DIALECTS["ems"]


def test_limits_together_refuse_what_either_refuses() -> None:
    mine = NameLimits(bytes=100, levels=20, forbidden_characters=".")
    other = NameLimits(bytes=256, levels=8, forbidden_first_levels=("$*",))

    both = mine.with_those_of(other)

    assert both.set_fields() == {
        "bytes": 100,
        "levels": 8,
        "forbidden_characters": ".",
        "forbidden_first_levels": ("$*",),
    }
    assert NameLimits.from_fields({**both.set_fields(), "forbidden_first_levels": ["$*"]}) == both


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("a/b/c/d/e/f/g/h", ""),
        ("a/b/c/d/e/f/g/h/i", "too-deep"),
        ("x" * 256, ""),
        ("x" * 257, "too-long"),
        ("$aws/things/pump/shadow/update", ""),
        ("$other/x", "forbidden-first-level"),
        ("$SYS/x", "reserved"),
    ],
)
def test_aws_iot(name: str, rule: str) -> None:
    translator = Translator(MQTT, Renderer(dialect_at("aws-iot")))

    if not rule:
        assert translator.name(name) == name
        return
    with pytest.raises(TranslationError) as refusal:
        translator.name(name)
    assert refusal.value.rule == rule


@pytest.mark.parametrize(
    ("host", "broker"),
    [
        ("a1b2c3-ats.iot.eu-central-1.amazonaws.com", "aws-iot"),
        ("x.ats.iot.cn-north-1.amazonaws.com.cn", "aws-iot"),
        ("s3.eu-central-1.amazonaws.com", None),
        ("iot.example.com", None),
    ],
)
def test_a_host_name_tells_its_broker(host: str, broker: str | None) -> None:
    found = [each.name for each in BROKERS.values() if each.hosts and each.hosts.fullmatch(host)]

    assert found == ([] if broker is None else [broker])


def test_every_known_broker_has_its_sources_and_legal_limits() -> None:
    for name, known in BROKERS.items():
        assert known.sources
        assert name not in DIALECTS  # `preflight --to` takes both
        assert dialect_at(name).name == name
