"""Tables of `docs/delivery.md` against the code: guarantees of all pairs, keys of sections."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

import pytest
import yaml

from gateway.check.guarantee import effective_mode
from gateway.config.load import load
from gateway.config.process import DeadLetterSettings, SpoolSettings
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.model.message import DeliveryMode

PAGE = Path(__file__).parents[2] / "docs" / "delivery.md"
WORDS: Mapping[str, DeliveryMode] = MappingProxyType(
    {
        "<= 1": DeliveryMode.AT_MOST_ONCE,
        ">= 1": DeliveryMode.AT_LEAST_ONCE,
        "= 1": DeliveryMode.EXACTLY_ONCE,
    }
)
# The columns of the table: the settings of an endpoint with each guarantee of its kind.
ENDPOINTS: Mapping[str, str] = MappingProxyType(
    {
        "mqtt-2": "kind: mqtt, qos: 2",
        "mqtt-1": "kind: mqtt, qos: 1",
        "mqtt-0": "kind: mqtt, qos: 0",
        "jms-persistent": "kind: jms, delivery: persistent",
        "jms-reliable": "kind: jms, delivery: reliable",
        "solace-guaranteed": "kind: solace, guaranteed: true",
        "solace-direct": "kind: solace, guaranteed: false",
        "yami4-reject": "kind: yami4, overflow_policy: reject_message",
        "yami4-drop": "kind: yami4, overflow_policy: drop_update",
        "nats-jetstream": "kind: nats, jetstream: true",
        "nats-core": "kind: nats, jetstream: false",
        "rabbitmq": "kind: rabbitmq, queue_type: classic",
        "amqp": "kind: amqp, queue_type: classic",
        "kafka": "kind: kafka, compression: none",
    }
)


def documented_modes() -> Iterator[tuple[str, str, str]]:
    """Yield source, target and word of each cell of the first table."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = list(itertools.takewhile(bool, lines[lines.index(start(lines)) :]))
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    for source, *words in rows:
        for target, word in zip(head[1:], words, strict=True):
            yield source, target, word


def start(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("| from"))


def test_the_modules_of_the_page_exist() -> None:
    modules = re.findall(r"`([a-z_/]+\.py)`", PAGE.read_text(encoding="utf-8"))

    assert [each for each in modules if not (PAGE.parents[1] / "gateway" / each).is_file()] == []


def test_every_kind_with_a_broker_of_its_own_has_a_column() -> None:
    columns = {yaml.safe_load(f"{{{keys}}}")["kind"] for keys in ENDPOINTS.values()}

    assert columns == {kind.name for kind in ENDPOINT_KINDS.values() if not kind.in_process}


def test_every_pair_of_systems_has_its_cell() -> None:
    pairs = [(source, target) for source, target, _ in documented_modes()]

    assert sorted(pairs) == sorted(itertools.product(ENDPOINTS, repeat=2))


@pytest.mark.parametrize(("source", "target", "word"), list(documented_modes()))
def test_a_pair_has_the_guarantee_of_the_page(
    tmp_path: Path, source: str, target: str, word: str
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        f"endpoints:\n  here: {{{ENDPOINTS[source]}}}\n  there: {{{ENDPOINTS[target]}}}\n"
        'routes:\n  r:\n    from: {endpoint: here, pattern: "{name...}"}\n'
        "    to: {endpoint: there}\n"
    )
    configuration = load(file)
    (route,) = configuration.routes

    assert effective_mode(route, route.targets[0], configuration) is WORDS[word]


@pytest.mark.parametrize(
    ("section", "settings"), [("spool", SpoolSettings), ("dead_letters", DeadLetterSettings)]
)
def test_the_sections_of_the_page_name_every_key(
    section: str, settings: type[SpoolSettings | DeadLetterSettings]
) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```yaml\n")[1:]
    examples = [yaml.safe_load(block.split("```")[0]) for block in blocks]
    (given,) = [each[section] for each in examples if section in each]

    assert given.keys() == {field.name for field in fields(settings)}
