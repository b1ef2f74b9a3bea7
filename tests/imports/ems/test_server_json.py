"""tibemsd.json: its sections are those of a file of the vendor's."""

from __future__ import annotations

import json

import pytest

from gateway.imports.document import Document, render
from gateway.imports.ems.importer import import_ems
from gateway.imports.source_lines import LineStatus

SERVER = {
    "acls": [],
    "groups": [{"name": "$admin", "members": [{"name": "admin"}]}],
    "model_version": "1.0",
    "tibemsd": {"authorization": False, "ssl": {"ssl_password": "$man$hunter2"}},
    "users": [{"name": "admin", "password": "hunter2"}],
}


def imported(**sections: object) -> Document:
    text = json.dumps({**SERVER, **sections}, indent=2)
    return import_ems([("tibemsd.json", text.encode())])


BRIDGES = [
    pytest.param(
        {"source_name": "A", "source_type": "topic", "targets": [{"name": "B", "type": "queue"}]},
        id="prefixed-source",
    ),
    pytest.param(
        {"name": "A", "type": "TOPIC", "targets": [{"name": "B", "type": "Queue", "selector": ""}]},
        id="plain-names",
    ),
    pytest.param(
        {"source": {"name": "A", "type": "topic"}, "targets": [{"name": "B", "type": "queue"}]},
        id="object",
    ),
    pytest.param({"source": "topic:A", "targets": ["queue:B"]}, id="as-in-a-script"),
    pytest.param(
        {"source": "topic:A", "targets": [{"target_name": "B", "target_type": "queue"}]},
        id="prefixed-target",
    ),
]


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_bridge_that_names_its_ends_becomes_a_route(bridge: object) -> None:
    document = imported(bridges=[bridge])

    (route,) = document.routes
    assert (route.pattern, route.targets[0].template) == ("A", "queue:B")
    assert document.lines(LineStatus.NOT_CARRIED_OVER) == ()


def test_a_selector_is_that_of_the_route() -> None:
    target = {"name": "B", "type": "queue", "selector": "kind in ('a')"}
    document = imported(bridges=[{"source": "topic:A", "targets": [target]}])

    assert document.routes[0].selector == "kind in ('a')"


UNKNOWN = [
    pytest.param({"from": "A", "to": "B"}, id="other-names"),
    pytest.param({"name": "A", "type": "stream", "targets": ["queue:B"]}, id="other-type"),
    pytest.param({"source": "topic:A", "targets": []}, id="no-target"),
    pytest.param({"source": "topic:A", "targets": ["queue:B", {"x": 1}]}, id="one-unknown-target"),
    pytest.param("topic:A", id="text"),
]


@pytest.mark.parametrize("bridge", UNKNOWN)
def test_a_bridge_of_an_unknown_form_is_listed(bridge: object) -> None:
    document = imported(bridges=[bridge])

    (line,) = document.lines(LineStatus.NOT_CARRIED_OVER)
    assert document.routes == ()
    assert line.item == "this bridge"
    assert "as `create bridge` into a script of tibemsadmin" in line.reason


def test_everything_else_stays_at_the_server_with_its_line() -> None:
    document = imported(bridges=[{"source": "topic:A", "targets": ["queue:B"]}])

    found = document.lines(LineStatus.STAYS_AT_BROKER)
    assert [each.item for each in found] == [
        "an entry of 'groups'", "an entry of 'model_version'", "an entry of 'tibemsd'",
        "an entry of 'users'",
    ]  # fmt: skip
    assert [each.location.line for each in found] == [4, 13, 14, 21]
    assert "hunter2" not in render(document)


def test_imports_and_exports_of_topics_are_notes() -> None:
    document = imported(
        topics=[{"name": "A", "import": "RV1, RV2", "export": ["RV1"], "maxbytes": "1GB"}],
        transports=[{"name": "RV1", "type": "tibrv"}, {"name": "RV2", "type": "tibftl"}],
        bridges=[{"source": "topic:A", "targets": ["queue:B"]}],
    )

    assert "some messages come from RV1 (tibrv)" in " ".join(document.routes[0].notes)
    assert any(each.item == "property 'maxbytes' of topic 'A'" for each in document.omitted)
    assert any("its type is none of tibrv" in each.reason for each in document.omitted)
