"""Names of EMS that its server forwards to Rendezvous and SmartSockets are legal there too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import Dialect, check_name, parse_pattern, render_subject
from gateway.dialects.names import respelled
from gateway.dialects.systems.ems import EMS
from gateway.dialects.systems.rendezvous import RV
from gateway.dialects.systems.smartsockets import SMARTSOCKETS
from gateway.errors import SubjectError, TranslationError
from gateway.model.subject import Subject

WITH_RV = EMS.joined_with([RV])
WITH_SS = EMS.joined_with([SMARTSOCKETS])
WITH_BOTH = EMS.joined_with([RV, SMARTSOCKETS])

RESTATED = [  # EMS User's Guide, "Destination Name Syntax and Semantics", chapter 16
    pytest.param("foo.bar.baz", SMARTSOCKETS, "/foo/bar/baz", id="slash-for-dot"),
    pytest.param("foo/bar.baz", SMARTSOCKETS, "/foo.bar/baz", id="dot-for-slash"),
    pytest.param("foo.bar.baz", RV, "foo.bar.baz", id="rendezvous-spells-as-ems"),
]

SENT = [
    pytest.param(("prices", "x"), WITH_BOTH, "prices.x", id="plain"),
    pytest.param(("_INBOX", "a"), WITH_RV, "_INBOX.a", id="the-inbox-may-be-sent-to"),
    pytest.param(("a", "_b"), WITH_RV, "a._b", id="first-element-only"),
    pytest.param(("_foo",), WITH_SS, "_foo", id="smartsockets-has-no-such-rule"),
    pytest.param(("a/b", "c"), WITH_SS, "a/b.c", id="slash"),
    pytest.param(("_foo",), EMS, "_foo", id="legal-in-ems-alone"),
]

REFUSED = [
    pytest.param(("_foo", "x"), WITH_RV, "rv-forbidden-first", id="underline"),
    pytest.param(("_RV", "x"), WITH_RV, "rv-reserved", id="advisories"),
    pytest.param(("_LOCAL", "x"), WITH_RV, "rv-local", id="never-leaves-the-daemon"),
    pytest.param(("a", "///"), WITH_SS, "smartsockets-wildcard-in-name", id="three-dots-there"),
    pytest.param(("_foo",), WITH_BOTH, "rv-forbidden-first", id="refused-by-one-of-two"),
    pytest.param(("a" * 128,), WITH_RV, "level-too-long", id="ems-itself-first"),
]

PATTERNS = [
    pytest.param("_foo.>", WITH_RV, "rv-forbidden-first", id="underline"),
    pytest.param("_LOCAL.*", WITH_RV, "rv-local", id="local"),
    pytest.param("a.///.>", WITH_SS, "smartsockets-wildcard-in-name", id="three-dots-there"),
]


@pytest.mark.parametrize(("name", "other", "expected"), RESTATED)
def test_the_server_respells_a_name(name: str, other: Dialect, expected: str) -> None:
    assert respelled(name.split("."), EMS, other) == expected


@pytest.mark.parametrize(("levels", "dialect", "name"), SENT)
def test_a_name_that_is_legal_in_every_joined_system_is_sent(
    levels: tuple[str, ...], dialect: Dialect, name: str
) -> None:
    assert render_subject(Subject(levels), dialect) == name


@pytest.mark.parametrize(("levels", "dialect", "rule"), REFUSED)
def test_a_refusal_names_the_system_that_refuses(
    levels: tuple[str, ...], dialect: Dialect, rule: str
) -> None:
    with pytest.raises(TranslationError) as caught:
        render_subject(Subject(levels), dialect)

    system = rule.partition("-")[0] if rule.startswith(("rv", "smart")) else "ems"
    assert caught.value.rule == rule
    assert system in str(caught.value)


@pytest.mark.parametrize(("pattern", "dialect", "rule"), PATTERNS)
def test_a_pattern_is_refused_when_a_joined_system_has_no_such_name(
    pattern: str, dialect: Dialect, rule: str
) -> None:
    with pytest.raises(SubjectError) as caught:
        parse_pattern(pattern, dialect)

    assert caught.value.rule == rule
    assert parse_pattern(pattern, EMS)


@pytest.mark.parametrize("pattern", [">", "*", "a.*.b", "a.>", "_INBOX.>", "$sys.monitor.>"])
def test_wildcards_are_legal_in_every_joined_system(pattern: str) -> None:
    assert parse_pattern(pattern, WITH_BOTH) == parse_pattern(pattern, EMS)


LEVELS = st.lists(st.text(st.sampled_from("ab_$/.>*%é "), min_size=1, max_size=5), min_size=1)


@given(levels=LEVELS.map(tuple))
def test_every_name_sent_is_legal_in_both_joined_systems(levels: tuple[str, ...]) -> None:
    try:
        name = render_subject(Subject(levels), WITH_BOTH)
    except TranslationError:
        return
    for other in (RV, SMARTSOCKETS):
        check_name(respelled(name.split("."), EMS, other), other)
    assert render_subject(Subject(levels), EMS) == name
