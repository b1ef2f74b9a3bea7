"""Scripts of tibemsadmin, as administrators keep them."""

from __future__ import annotations

import pytest

from gateway.imports.document import Document, render
from gateway.imports.ems.importer import import_ems
from gateway.imports.source_lines import LineStatus
from tests.imports.imported import omitted


def imported(text: str) -> Document:
    return import_ems([("bridges.script", text.encode())])


def lost(document: Document) -> list[str]:
    return [str(each) for each in document.lines(LineStatus.NOT_CARRIED_OVER)]


BRIDGES = [
    pytest.param("source=topic:A target=queue:B", ("A", "queue:B", ""), id="plain"),
    pytest.param('source="topic:A" target="queue:B"', ("A", "queue:B", ""), id="quoted"),
    pytest.param('source=topic:"A" target=topic:"B C"', ("A", "B C", ""), id="quoted-names"),
    pytest.param("target=topic:B source=topic:A.>", ("A.>", "B", ""), id="other-order"),
    pytest.param("SOURCE = TOPIC:A Target = Queue:B", ("A", "queue:B", ""), id="case-and-blanks"),
    pytest.param(
        "source=topic:A target=queue:B selector=\"kind in ('a','b') and (n > 1)\"",
        ("A", "queue:B", "kind in ('a','b') and (n > 1)"),
        id="parentheses",
    ),
    pytest.param("source=topic:A target=queue:B selector=n>1", ("A", "queue:B", "n>1"), id="bare"),
    pytest.param(
        "source=topic:A \\\n  target=queue:B", ("A", "queue:B", ""), id="continued-on-the-next-line"
    ),
]


@pytest.mark.parametrize(("text", "expected"), BRIDGES)
def test_a_bridge_becomes_a_route(text: str, expected: tuple[str, str, str]) -> None:
    document = imported(f"create bridge {text}\n")

    (route,) = document.routes
    assert (route.pattern, route.targets[0].template, route.selector) == expected
    assert omitted(document) == []


def test_the_bridges_of_one_source_are_one_route() -> None:
    document = imported(
        "create queue B\ncreate bridge source=topic:A target=queue:B\n# the second\n"
        "create bridge source=topic:A target=queue:C\n"
    )

    (route,) = document.routes
    assert [each.template for each in route.targets] == ["queue:B", "queue:C"]
    assert lost(document) == []


def test_a_bridge_that_a_later_line_deletes_is_no_route() -> None:
    document = imported(
        "delete bridge source=topic:A target=queue:B\ny\n"
        "create bridge source=topic:A target=queue:B\ncreate bridge source=topic:A target=queue:C\n"
        "delete bridge source=topic:A target=queue:B\n"
    )

    assert [each.template for each in document.routes[0].targets] == ["queue:C"]
    assert lost(document) == []


def test_imports_and_exports_are_notes_on_routes() -> None:
    document = imported(
        'create topic A secure\naddprop topic A import="RV1"\n'
        "create bridge source=topic:A target=queue:B\n"
    )

    assert "bridges.script:2: some messages come from RV1." in " ".join(document.routes[0].notes)
    (line,) = lost(document)
    assert line.startswith("bridges.script:2: topic 'A': not carried over; no transport 'RV1'")


def test_the_commands_of_a_shell_script_stand_in_its_here_documents() -> None:
    document = imported(
        "#!/bin/ksh\nif [[ -z $1 ]]\nthen exit 1\nfi\n"
        "tibemsadmin -server $1 -user admin -password hunter2 <<EOF\n\n"
        "# was hunter2\ncreate bridge source=topic:A target=queue:B\n\nexit\nEOF\necho done\n"
    )

    assert [each.pattern for each in document.routes] == ["A"]
    assert lost(document) == []
    assert "hunter2" not in render(document)


def test_other_commands_stay_at_the_server_and_other_lines_are_listed() -> None:
    document = imported(
        "connect tcp://h:7222 admin s3cret\ncreate user u password=s3cret\n# s3cret\n"
        "create bridge source=topic:A target=queue:B\nfrobnicate s3cret\ncommit\n"
    )

    assert lost(document) == [
        "bridges.script:5: this line: not carried over; it is no command of tibemsadmin"
    ]
    assert len(document.lines(LineStatus.STAYS_AT_BROKER)) == 3
    assert "s3cret" not in render(document)


WRONG = [
    pytest.param("create bridge source=topic:A", id="no-target"),
    pytest.param("create bridge source=A target=queue:B", id="no-type"),
    pytest.param("create bridge source=topic:A target=queue:B urgent", id="more"),
    pytest.param('create bridge source=topic:A target=queue:B selector="n', id="open-quote"),
]


@pytest.mark.parametrize("text", WRONG)
def test_a_bridge_of_another_form_is_listed(text: str) -> None:
    document = imported(f"{text}\n")

    assert document.routes == ()
    assert lost(document)[0].startswith(
        "bridges.script:1: this bridge: not carried over; it does not read source=TYPE:NAME"
    )


@pytest.mark.parametrize("selector", ["", ' selector="n > 1"'], ids=["plain", "selector"])
def test_a_bridge_from_a_queue_is_listed_once(selector: str) -> None:
    document = imported(f"create bridge source=queue:Q1 target=topic:T1{selector}\n")

    (line,) = lost(document)
    assert "bridge from queue 'Q1'" in line
