"""The note about a broker that two kinds of endpoint use: a path does not cross it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

CONFIG = """\
endpoints:
  plant: {{kind: mqtt, host: plant.example}}
  {endpoints}
routes:
  all:
    from: {{endpoint: plant, pattern: "a/{{rest...}}"}}
    to: {{endpoint: work, template: "{template}"}}
    direction: both
  {more}
"""
RABBITMQ = 'work: {kind: rabbitmq, url: "amqp://b.example/"}'
READS = '{from: {endpoint: topics, pattern: "a/#"}, to: {endpoint: plant}}'
AT_ONE = [
    pytest.param("topics: {kind: mqtt, host: b.example, port: 1885}", f"in: {READS}", 1, id="host"),
    pytest.param("topics: {kind: mqtt, host: c.example}", f"in: {READS}", 0, id="another-host"),
    pytest.param("topics: {kind: mqtt, host: b.example}", "", 0, id="that-nobody-reads"),
    pytest.param(
        'topics: {kind: rabbitmq, url: "amqp://b.example/"}',
        'in: {from: {endpoint: topics, pattern: "a.#"}, to: {endpoint: plant}}',
        0,
        id="the-same-kind",
    ),
]


@pytest.mark.parametrize(("other", "more", "notes"), AT_ONE)
def test_another_kind_that_reads_at_the_same_broker_has_a_note(
    tmp_path: Path, other: str, more: str, notes: int
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        CONFIG.format(endpoints=f"{RABBITMQ}\n  {other}", template="a.{rest...}", more=more)
    )

    found = [each for each in examine(load(file)) if each.rule == "path-lost"]

    assert len(found) == notes
    assert all("where 'topics' reads what was sent to 'work'" in each.reason for each in found)


@pytest.mark.parametrize(
    ("host", "name", "notes"),
    [
        pytest.param("localhost", "", 0, id="two-brokers-may-be-localhost"),
        pytest.param("localhost", "one", 2, id="one-name"),
        pytest.param("plant.example", "", 2, id="one-host"),
    ],
)
def test_both_ends_of_a_route_at_one_broker_have_a_note(
    tmp_path: Path, host: str, name: str, notes: int
) -> None:
    more = f", broker_id: {name}" if name else ""
    text = CONFIG.format(
        endpoints=f'work: {{kind: rabbitmq, url: "amqp://{host}/"{more}}}',
        template="a.{rest...}", more="",
    ).replace("host: plant.example", f"host: {host}{more}")  # fmt: skip
    file = tmp_path / "gateway.yaml"
    file.write_text(text)

    assert [each.rule for each in examine(load(file))].count("path-lost") == notes
