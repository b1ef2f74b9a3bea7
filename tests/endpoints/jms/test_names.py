"""Addresses, name checks, escaped property names and wildcards of the JMS endpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.jms import subscription_filter
from gateway.endpoints.jms.addresses import (
    QUEUE,
    TEMPORARY_QUEUE,
    TOPIC,
    find_name_error,
    join_address,
    split_address,
)
from gateway.endpoints.jms.property_names import decode_property_name, encode_property_name
from gateway.endpoints.jms.subscription_filter import SubscriptionFilter, selects
from tests.model.test_memory_size import taken

DOCUMENTED = (Path(__file__).parents[3] / "docs/ems.md").read_text(encoding="utf-8")

ENCODED = [
    pytest.param("plain", "plain", id="identifier"),
    pytest.param("größe", "größe", id="letters-of-any-language"),
    pytest.param("a-b", "a_x2d_b", id="dash"),
    pytest.param("a.b c", "a_x2e_b_x20_c", id="dot-and-blank"),
    pytest.param("1st", "_x31_st", id="digit-first"),
    pytest.param("and", "_x61_nd", id="reserved-word-in-any-case"),
    pytest.param("NULL", "_x4e_ULL", id="reserved-word"),
    pytest.param("a_x2d_b", "a_x5f_x2d_b", id="looks-escaped"),
    pytest.param("_x", "_x5f_x", id="underline-before-x"),
    pytest.param("", "_x_", id="empty"),
    pytest.param("JMSfoo", "_x4a_MSfoo", id="name-of-jms"),
    pytest.param("JMS_TIBCO_SS_SENDER", "_x4a_MS_TIBCO_SS_SENDER", id="smartsockets"),
    pytest.param("gateway_id", "gateway_id", id="message-id-of-a-gateway"),
    pytest.param("gateway_time", "_x67_ateway_time", id="name-of-the-gateway"),
    pytest.param("JMSXGroupID", "JMSXGroupID", id="settable-by-clients"),
    pytest.param("🜚", "_x1f71a_", id="beyond-the-basic-plane"),
]


@pytest.mark.parametrize(("name", "encoded"), ENCODED)
def test_a_property_name_is_encoded_for_jms_and_decoded(name: str, encoded: str) -> None:
    assert encode_property_name(name) == encoded
    assert decode_property_name(encoded) == name


@pytest.mark.parametrize(
    "name", ["JMS_TIBCO_IMPORTED", "JMS_TIBCO_COMPRESS", "JMS_TIBCO_MSG_EXT", "JMSXDeliveryCount"]
)
def test_properties_about_one_server_are_not_forwarded(name: str) -> None:
    assert encode_property_name(name) is None


ESCAPED, LEFT_OUT = "escaped", "left out"
TIBCO_PROPERTIES = [  # EMS User's Guide, tables 5, 64 and 69; their form at the next server
    ("JMS_TIBCO_CM_PUBLISHER", ESCAPED),
    ("JMS_TIBCO_CM_SEQUENCE", ESCAPED),
    ("JMS_TIBCO_COMPRESS", LEFT_OUT),
    ("JMS_TIBCO_DISABLE_SENDER", LEFT_OUT),
    ("JMS_TIBCO_IMPORTED", LEFT_OUT),
    ("JMS_TIBCO_MSG_EXT", LEFT_OUT),
    ("JMS_TIBCO_MSG_TRACE", LEFT_OUT),
    ("JMS_TIBCO_PRESERVE_UNDELIVERED", LEFT_OUT),
    ("JMS_TIBCO_SENDER", ESCAPED),
    ("JMS_TIBCO_SS_CORRELATION_ID", ESCAPED),
    ("JMS_TIBCO_SS_DELIVERY_MODE", ESCAPED),
    ("JMS_TIBCO_SS_EXPIRATION", ESCAPED),
    ("JMS_TIBCO_SS_LB_MODE", ESCAPED),
    ("JMS_TIBCO_SS_MESSAGE_ID", ESCAPED),
    ("JMS_TIBCO_SS_PRIORITY", ESCAPED),
    ("JMS_TIBCO_SS_SENDER", ESCAPED),
    ("JMS_TIBCO_SS_SENDER_TIMESTAMP", ESCAPED),
    ("JMS_TIBCO_SS_SEQ_NUM", ESCAPED),
    ("JMS_TIBCO_SS_TYPE_NUM", ESCAPED),
    ("JMS_TIBCO_SS_USER_PROP", ESCAPED),
]


@pytest.mark.parametrize(("name", "forwarded_as"), TIBCO_PROPERTIES)
def test_properties_set_by_ems_are_read_and_never_sent_under_their_name(
    name: str, forwarded_as: str
) -> None:
    encoded = encode_property_name(name)

    assert decode_property_name(name) == name
    assert encoded == (f"_x4a_{name[1:]}" if forwarded_as == ESCAPED else None)
    assert encoded is None or decode_property_name(encoded) == name
    assert name.removeprefix("JMS_TIBCO") in DOCUMENTED


@given(st.text())
def test_every_encoded_name_decodes_to_the_original(name: str) -> None:
    encoded = encode_property_name(name)

    assert encoded is None or decode_property_name(encoded) == name


@given(st.text(), st.text())
def test_two_names_never_have_the_same_encoding(first: str, second: str) -> None:
    assert (
        first == second
        or encode_property_name(first) is None
        or encode_property_name(first) != encode_property_name(second)
    )


@pytest.mark.parametrize("name", ["foo_x41_", "_x", "a_xzz_", "_x110000_", "_x_a"])
def test_a_foreign_name_that_looks_escaped_is_unchanged(name: str) -> None:
    assert decode_property_name(name) == name


@pytest.mark.parametrize(
    ("address", "kind", "name"),
    [
        pytest.param("a.b", TOPIC, "a.b", id="of-the-default-kind"),
        pytest.param("queue:a.b", QUEUE, "a.b", id="of-the-other-kind"),
        pytest.param("topic:queue:a", TOPIC, "queue:a", id="a-name-that-looks-prefixed"),
        pytest.param("tempqueue:$TMP$.x", TEMPORARY_QUEUE, "$TMP$.x", id="temporary"),
        pytest.param("other:a", TOPIC, "other:a", id="a-colon-is-no-prefix"),
    ],
)
def test_an_address_contains_its_kind(address: str, kind: int, name: str) -> None:
    assert split_address(address, TOPIC) == (kind, name)
    assert join_address(kind, name, TOPIC) == address


@given(st.sampled_from([TOPIC, QUEUE]), st.sampled_from([TOPIC, QUEUE]), st.text(min_size=1))
def test_destinations_never_share_an_address(default: int, kind: int, name: str) -> None:
    assert split_address(join_address(kind, name, default), default) == (kind, name)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("$a", "dollar-first", id="dollar"),
        pytest.param("a..b", "empty-element", id="empty-element"),
        pytest.param("a" * 120 + "." + "b" * 129, "length", id="250-characters"),
        pytest.param(".".join("a" * 65), "length", id="65-elements"),
        pytest.param("a" * 128, "element-length", id="128-in-one"),
        pytest.param("a.*.b", "wildcard", id="wildcard"),
    ],
)
def test_a_name_that_ems_would_refuse_is_refused_first(name: str, rule: str) -> None:
    error = find_name_error(name, ems=True)

    assert error is not None
    assert error[0] == rule


@pytest.mark.parametrize(
    ("name", "joined", "rule"),
    [
        pytest.param("_x.a", ("rv",), "rv-forbidden-first", id="underline"),
        pytest.param("_RV.a", ("rv",), "rv-forbidden-first", id="advisories"),
        pytest.param("a.///", ("smartsockets",), "smartsockets-wildcard-in-name", id="three-dots"),
        pytest.param("_x.///", (), None, id="ems-alone"),
        pytest.param("_INBOX.a", ("rv", "smartsockets"), None, id="inbox"),
        pytest.param("a._x", ("rv", "smartsockets"), None, id="first-element-only"),
    ],
)
def test_a_name_must_be_legal_in_the_systems_that_ems_exports_to(
    name: str, joined: tuple[str, ...], rule: str | None
) -> None:
    found = find_name_error(name, ems=True, joined=joined)

    assert (found and found[0]) == rule
    assert find_name_error(name, ems=False, joined=joined) is None


def test_names_of_other_systems_are_refused_only_if_they_break_connections() -> None:
    assert find_name_error("a..b", ems=False) is None
    assert find_name_error("a" * 33_003, ems=False) == (
        "length",
        "the name is 33003 bytes, limit 32000",
    )


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        pytest.param("foo.>", "foo", False, id="at-least-one-more-element"),
        pytest.param("foo.>", "foo.a", True, id="one-more"),
        pytest.param("foo.>", "foo.a.b", True, id="two-more"),
        pytest.param("foo.>", "foobar", False, id="whole-elements"),
        pytest.param(">", "a", True, id="everything"),
        pytest.param("a.*", "a.b", True, id="star"),
        pytest.param("a.*", "a", False, id="star-is-an-element"),
        pytest.param("a.*", "a.b.c", False, id="star-is-one-element"),
        pytest.param("a.*.c", "a.b.c", True, id="star-inside"),
        pytest.param("a.b*", "a.bc", False, id="star-in-text-is-text"),
        pytest.param("*.>", "a", False, id="both-too-short"),
        pytest.param("*.>", "a.b", True, id="both"),
        pytest.param(">", "$sys.a", False, id="name-of-the-server"),
        pytest.param("$sys.>", "$sys.a", True, id="name-of-the-server-given-in-full"),
    ],
)
def test_a_pattern_selects_the_names_that_ems_selects(
    pattern: str, name: str, expected: bool
) -> None:
    assert selects(pattern, name) is expected


def test_the_first_subscription_that_selects_a_message_gets_it() -> None:
    selection = SubscriptionFilter([(TOPIC, "a.>"), (TOPIC, "a.b"), (QUEUE, "a.b")])

    assert selection.accepts(0, TOPIC, "a.b")
    assert not selection.accepts(1, TOPIC, "a.b")
    assert selection.accepts(2, QUEUE, "a.b")


def test_names_of_another_system_are_selected_by_its_server() -> None:
    selection = SubscriptionFilter([(TOPIC, "a/>"), (TOPIC, "a/b")], ems_names=False)

    assert selection.accepts(0, TOPIC, "a/b")
    assert selection.accepts(1, TOPIC, "a/b")


def test_advisory_messages_are_accepted_only_by_their_own_pattern() -> None:
    assert not SubscriptionFilter([(TOPIC, ">")]).accepts(0, TOPIC, "ActiveMQ.Advisory.Connection")
    assert SubscriptionFilter([(TOPIC, "ActiveMQ.Advisory.>")]).accepts(
        0, TOPIC, "ActiveMQ.Advisory.Connection"
    )


@pytest.mark.nightly
def test_long_names_take_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription_filter, "MAX_REMEMBERED_SIZE", 1 << 20)

    def fill() -> SubscriptionFilter:
        selection = SubscriptionFilter([(TOPIC, ">")])
        for number in range(60):
            name = f"a.{number}." + "x" * 30_000
            selection.accepts(0, TOPIC, name)
            decode_property_name(encode_property_name(name) or "")
        return selection

    assert taken(fill) < 1 << 20
