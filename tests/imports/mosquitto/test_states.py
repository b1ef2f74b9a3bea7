"""Notifications of a bridge become states, and no route carries them on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.imports.document import Document, StateEntry, render
from gateway.imports.mosquitto.importer import import_mosquitto
from tests.imports.imported import QUIET, import_alone, loaded, omitted

HEAD = "connection c\naddress h\nbridge_protocol_version mqttv50\n"
NAMED = "notification_topic bridge/c\n"
BOTH_SIDES = [("c", "c-local"), ("c-local", "c")]
ONE_SIDE = BOTH_SIDES[1:]


def imported(text: str) -> Document:
    return import_alone("m", text.encode())


def sides(document: Document) -> list[tuple[str, str]]:
    return [(each.endpoint, each.of) for each in document.states]


STATES = [
    pytest.param(NAMED, BOTH_SIDES, id="both-sides"),
    pytest.param(f"{NAMED}notifications true\n", BOTH_SIDES, id="on"),
    pytest.param(f"{NAMED}notifications_local_only true\n", ONE_SIDE, id="local"),
    pytest.param(f"{NAMED}{QUIET}", [], id="off"),
    pytest.param(QUIET, [], id="off-without-a-name"),
]


@pytest.mark.parametrize(("lines", "expected"), STATES)
def test_each_side_that_mosquitto_notifies_keeps_the_state(
    tmp_path: Path, lines: str, expected: list[tuple[str, str]]
) -> None:
    document = imported(f"{HEAD}{lines}topic a/# out 1\n")

    assert sides(document) == expected
    assert {each.name for each in document.states} <= {"bridge/c"}
    assert [each.name for each in loaded(document, tmp_path).state] == ["bridge/c"] * len(expected)
    assert omitted(document) == []


OWN_NAMES = [
    pytest.param("", 1, "`$SYS/broker/connection/...` belongs to the broker", id="default"),
    pytest.param("notification_topic $SYS/c\n", 4, "no client may use the old", id="system"),
    pytest.param("notification_topic b/+/s\n", 4, "'+' is a wildcard", id="wildcard"),
    pytest.param("notification_topic b # c\n", 4, "'#' is a wildcard", id="comment"),
    pytest.param("notification_topic b/{x}\n", 4, "has a brace", id="brace"),
    pytest.param("notification_topic ${env:X}\n", 4, "would replace", id="reference"),
]


@pytest.mark.parametrize(("lines", "at", "reason"), OWN_NAMES)
def test_a_name_that_no_client_may_use_becomes_another_one_and_is_listed(
    tmp_path: Path, lines: str, at: int, reason: str
) -> None:
    text = f"{HEAD}{lines}topic # both 1\n"
    document = import_mosquitto("m", text.encode(), lambda _: (), "north-1")

    assert {each.name for each in document.states} == {"bridge/north-1-c/state"}
    (line,) = omitted(document)
    assert line.startswith(f"m:{at}: the state of connection 'c': not carried over; it has another")
    assert reason in line
    assert quiet(document, tmp_path)


def test_a_broker_behind_a_bridge_that_retains_nothing_keeps_no_state() -> None:
    document = imported(f"{HEAD}{NAMED}bridge_outgoing_retain false\ntopic a/# out\n")

    assert sides(document) == ONE_SIDE
    (line,) = omitted(document)
    assert line.startswith("m:5: the state of connection 'c': not carried over; the state is")


def quiet(document: Document, folder: Path) -> bool:
    """Return whether the check has neither errors nor warnings."""
    return all(each.severity == "note" for each in examine(loaded(document, folder)))


READERS = [
    pytest.param("topic # out 1", [("bridge/c",)], id="out"),
    pytest.param("topic # in 1", [("bridge/c",)], id="in"),
    pytest.param("topic # both 1", [("bridge/c",)], id="both"),
    pytest.param("topic # both 1 l/ bridge/", [("l/c",)], id="both-renamed"),
    pytest.param("topic # out 1 bridge/ r/", [("bridge/c",)], id="out-renamed"),
    pytest.param("topic bridge/+ out 1\ntopic x/# in", [("bridge/c",), ()], id="one-of-two"),
    pytest.param("topic x/# both 1", [()], id="none"),
]


@pytest.mark.parametrize(("topics", "excludes"), READERS)
def test_a_route_excludes_the_state_that_it_would_read(
    tmp_path: Path, topics: str, excludes: list[tuple[str, ...]]
) -> None:
    document = imported(f"{HEAD}{NAMED}{topics}\n")

    assert [each.exclude for each in document.routes] == excludes
    assert omitted(document) == []
    assert quiet(document, tmp_path)


def test_a_route_that_reads_only_the_state_is_left_out(tmp_path: Path) -> None:
    document = imported(f"{HEAD}{NAMED}topic bridge/c out 1\ntopic x out 1\n")

    assert [each.pattern for each in document.routes] == ["x"]
    (line,) = omitted(document)
    assert line.startswith("m:5: the topic 'bridge/c': not carried over; it reads only the state")
    assert quiet(document, tmp_path)


SECOND = "connection d\naddress h2\nbridge_protocol_version mqttv50\n"


def test_another_connection_that_carried_the_state_on_is_listed(tmp_path: Path) -> None:
    document = imported(f"{HEAD}{NAMED}topic a out 1\n{SECOND}{QUIET}topic # out 1\n")

    assert [each.exclude for each in document.routes] == [(), ("bridge/c",)]
    (line,) = omitted(document)
    assert line.startswith("m:10: the topic '#': not carried over; it reads the state of connec")
    assert quiet(document, tmp_path)


def test_a_connection_without_a_live_route_tells_nothing(tmp_path: Path) -> None:
    document = imported(f"{HEAD}{NAMED}topic $SYS/# out\n{SECOND}{QUIET}topic a out 1\n")

    assert [each.name for each in document.live_routes] == ["d-out-a"]
    assert document.states == ()
    assert quiet(document, tmp_path)


def test_each_state_has_the_line_of_its_connection() -> None:
    document = imported(f"{HEAD}{NAMED}topic a out\n")

    assert document.states[0] == StateEntry(
        "c", "c-local", "bridge/c", "m:1: notifications of the connection, at the other broker."
    )
    assert "\nstate:\n  # m:1: notifications" in render(document)
