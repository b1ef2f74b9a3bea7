"""Addresses with their kind, property names that survive, and which names a pattern selects."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.jms.names import (
    QUEUE,
    TEMPORARY_QUEUE,
    TOPIC,
    find_name_fault,
    join_address,
    read_name,
    split_address,
    write_name,
)
from gateway.endpoints.jms.patterns import Screen, selects

DOCUMENTED = (Path(__file__).parents[2] / "docs/ems.md").read_text(encoding="utf-8")

SPELLED = [
    pytest.param("plain", "plain", id="identifier"),
    pytest.param("größe", "größe", id="letters-of-any-language"),
    pytest.param("a-b", "a_x2d_b", id="dash"),
    pytest.param("a.b c", "a_x2e_b_x20_c", id="dot-and-blank"),
    pytest.param("1st", "_x31_st", id="digit-first"),
    pytest.param("and", "_x61_nd", id="reserved-word-in-any-case"),
    pytest.param("NULL", "_x4e_ULL", id="reserved-word"),
    pytest.param("a_x2d_b", "a_x5f_x2d_b", id="what-looks-escaped"),
    pytest.param("_x", "_x5f_x", id="underline-before-x"),
    pytest.param("", "_x_", id="empty"),
    pytest.param("JMSfoo", "_x4a_MSfoo", id="of-jms"),
    pytest.param("JMS_TIBCO_SS_SENDER", "_x4a_MS_TIBCO_SS_SENDER", id="smartsockets"),
    pytest.param("gateway_id", "gateway_id", id="the-id-a-gateway-gave"),
    pytest.param("gateway_time", "_x67_ateway_time", id="of-the-gateway"),
    pytest.param("JMSXGroupID", "JMSXGroupID", id="for-clients-to-set"),
    pytest.param("🜚", "_x1f71a_", id="beyond-the-basic-plane"),
]


@pytest.mark.parametrize(("name", "spelled"), SPELLED)
def test_a_property_name_is_spelled_for_jms_and_read_back(name: str, spelled: str) -> None:
    assert write_name(name) == spelled
    assert read_name(spelled) == name


@pytest.mark.parametrize(
    "name", ["JMS_TIBCO_IMPORTED", "JMS_TIBCO_COMPRESS", "JMS_TIBCO_MSG_EXT", "JMSXDeliveryCount"]
)
def test_what_is_said_of_one_hop_does_not_make_the_next(name: str) -> None:
    assert write_name(name) is None


ESCAPED, LEFT_OUT = "escaped", "left out"
OF_TIBCO = [  # EMS User's Guide, tables 5, 64 and 69; what becomes of them at the next server
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


@pytest.mark.parametrize(("name", "becomes"), OF_TIBCO)
def test_properties_of_ems_are_read_and_never_said_again(name: str, becomes: str) -> None:
    spelled = write_name(name)

    assert read_name(name) == name
    assert spelled == (f"_x4a_{name[1:]}" if becomes == ESCAPED else None)
    assert spelled is None or read_name(spelled) == name
    assert name.removeprefix("JMS_TIBCO") in DOCUMENTED


@given(st.text())
def test_every_name_comes_back(name: str) -> None:
    spelled = write_name(name)

    assert spelled is None or read_name(spelled) == name


@given(st.text(), st.text())
def test_two_names_never_become_one(first: str, second: str) -> None:
    assert first == second or write_name(first) is None or write_name(first) != write_name(second)


@pytest.mark.parametrize("name", ["foo_x41_", "_x", "a_xzz_", "_x110000_", "_x_a"])
def test_a_foreign_name_that_looks_escaped_stays(name: str) -> None:
    assert read_name(name) == name


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
def test_an_address_says_its_kind(address: str, kind: int, name: str) -> None:
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
def test_what_ems_would_refuse_is_refused_here(name: str, rule: str) -> None:
    fault = find_name_fault(name, ems=True)

    assert fault is not None
    assert fault[0] == rule


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
def test_a_name_is_legal_where_ems_exports_it_to(
    name: str, joined: tuple[str, ...], rule: str | None
) -> None:
    found = find_name_fault(name, ems=True, joined=joined)

    assert (found and found[0]) == rule
    assert find_name_fault(name, ems=False, joined=joined) is None


def test_another_system_is_kept_from_what_breaks_connections_only() -> None:
    assert find_name_fault("a..b", ems=False) is None
    assert find_name_fault("a" * 33_003, ems=False) == (
        "length",
        "the name is 33003 bytes, limit 32000",
    )


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        pytest.param("foo.>", "foo", False, id="one-element-more-at-least"),
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
        pytest.param(">", "$sys.a", False, id="the-servers-own"),
        pytest.param("$sys.>", "$sys.a", True, id="the-servers-own-by-name"),
    ],
)
def test_selects_as_ems_does(pattern: str, name: str, expected: bool) -> None:
    assert selects(pattern, name) is expected


def test_a_message_belongs_to_the_first_subscription_that_selects_it() -> None:
    screen = Screen([(TOPIC, "a.>"), (TOPIC, "a.b"), (QUEUE, "a.b")])

    assert screen.wants(0, TOPIC, "a.b")
    assert not screen.wants(1, TOPIC, "a.b")
    assert screen.wants(2, QUEUE, "a.b")


def test_names_of_another_system_are_left_to_its_server() -> None:
    screen = Screen([(TOPIC, "a/>"), (TOPIC, "a/b")], dotted=False)

    assert screen.wants(0, TOPIC, "a/b")
    assert screen.wants(1, TOPIC, "a/b")


def test_what_a_broker_says_of_itself_is_not_wanted() -> None:
    assert not Screen([(TOPIC, ">")]).wants(0, TOPIC, "ActiveMQ.Advisory.Connection")
    assert Screen([(TOPIC, "ActiveMQ.Advisory.>")]).wants(0, TOPIC, "ActiveMQ.Advisory.Connection")
