"""The partition of the copies of a target in a file, and in the copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.result_copies import copies
from gateway.model.message import Headers, Message, Value
from gateway.routing.explain import explain
from tests.config.test_names_of import NAME, configuration, faults

TARGET = 'to: {{endpoint: lake, topic: "plant", key: "{{line}}.{{rest...}}"{partition}}}'
FROM = 'from: {endpoint: plant, pattern: "plant/{line}/{rest...}"}'


def route(partition: str) -> str:
    more = f", partition: {partition}" if partition else ""
    return f"  r:\n    {FROM}\n    {TARGET.format(partition=more)}\n"


def chosen(folder: Path, partition: str, **properties: Value) -> list[object]:
    """Return the `gateway_partition` of each copy in Kafka, or the rule that refuses it."""
    found = configuration(folder, route(partition))
    message = Message(NAME, b'{"site": "north"}', Headers(properties=properties))
    made = copies(found.routes, message, found)
    return [
        each.message.headers.properties.get("gateway_partition") if each.message else each.refused
        for each in made
    ]


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        pytest.param('"{line}"', "7", id="capture"),
        pytest.param('"{line|upper}-{rest...|join:.}"', "7-motor.temp.max", id="functions"),
        pytest.param('"{property.site}"', "north", id="field"),
        pytest.param('"{property.city|default:none}"', "none", id="default"),
        pytest.param('"{property.city}"', "field", id="no-field"),
        pytest.param("0", 0, id="number"),
        pytest.param('"12"', 12, id="number-in-quotes"),
        pytest.param("", None, id="none"),
    ],
)
def test_a_copy_names_its_partition(tmp_path: Path, partition: str, expected: object) -> None:
    assert chosen(tmp_path, partition, site="north") == [expected]


@pytest.mark.parametrize(("partition", "expected"), [('"{line}"', "7"), ("", None)])
def test_a_publisher_chooses_no_partition(tmp_path: Path, partition: str, expected: object) -> None:
    assert chosen(tmp_path, partition, gateway_partition=3) == [expected]


@pytest.mark.parametrize(
    ("partition", "reason", "hint"),
    [
        pytest.param('"{lime}"', "unknown capture '{lime}'", "", id="capture"),
        pytest.param('"{rest...}"', "is many levels; join them", "", id="levels"),
        pytest.param('"{line"', "a brace belongs to a capture", "", id="brace"),
        pytest.param("all", "'all' is no number of a partition", "such as {line}", id="text"),
        pytest.param("-1", "'-1' is no number", "such as {line}", id="negative"),
        pytest.param('""', "'' is no number", "such as {line}", id="empty"),
        pytest.param("1.5", "'1.5' is no number", "such as {line}", id="fraction"),
        pytest.param("2147483648", "is no number", "such as {line}", id="large"),
    ],
)
def test_a_partition_that_is_none_is_one_finding(
    tmp_path: Path, partition: str, reason: str, hint: str
) -> None:
    (found,) = faults(tmp_path, route(partition))

    assert reason in found[2]
    assert hint in f"{found[2]} {found[3]}"
    assert found[1] == 3


def test_only_a_kind_with_partitions_takes_one(tmp_path: Path) -> None:
    to = 'to: {endpoint: plant2, template: "x/{rest...}", partition: "{line}"}'
    (found,) = faults(tmp_path, f"  r:\n    {FROM}\n    {to}\n")

    assert found[0] == "partition"
    assert found[2] == "an endpoint of kind mqtt has no partitions"
    assert found[3] == "leave `partition` out"


def test_no_header_rule_chooses_a_partition(tmp_path: Path) -> None:
    to = 'to: {endpoint: lake, topic: "a", headers: {set: {gateway_partition: "1"}}, lossy: true}'
    (found,) = faults(tmp_path, f"  r:\n    {FROM}\n    {to}\n")

    assert "'gateway_partition' chooses the partition" in found[2]
    assert found[3] == "write `partition` at the target"


def test_a_retained_message_that_ends_has_no_field_of_a_payload(tmp_path: Path) -> None:
    rules = [each[0] for each in faults(tmp_path, route('"{payload.site}"'))]

    assert rules == ["retained-field"]


@pytest.mark.parametrize(
    ("partition", "shown"), [('"{line}"', "that of the text '7'"), ("3", "3"), ("", "")]
)
def test_an_explanation_shows_the_partition(tmp_path: Path, partition: str, shown: str) -> None:
    (result,) = explain(NAME, configuration(tmp_path, route(partition)).routes, None)

    assert [each.partition for each in result.made] == [shown]


def test_an_explanation_says_which_field_the_partition_lacks(tmp_path: Path) -> None:
    routes = configuration(tmp_path, route('"{property.site}"')).routes
    (result,) = explain(NAME, routes, None)

    assert [each.rule for each in result.made] == ["field"]
