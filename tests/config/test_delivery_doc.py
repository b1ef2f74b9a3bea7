"""`docs/delivery.md` says what `gateway check` says: the guarantee of every pair of systems."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

import pytest
import yaml

from gateway.check.examine import effective_mode
from gateway.config.load import load
from gateway.config.process import DeadLettersRef, SpoolRef
from gateway.model.message import DeliveryMode

PAGE = Path(__file__).parents[2] / "docs" / "delivery.md"
WORDS: Mapping[str, DeliveryMode] = MappingProxyType(
    {
        "<= 1": DeliveryMode.AT_MOST_ONCE,
        ">= 1": DeliveryMode.AT_LEAST_ONCE,
        "= 1": DeliveryMode.EXACTLY_ONCE,
    }
)
JMS = "kind: jms, dialect: ems, classpath: [x.jar], factory: F, urls: ['tcp://h:7222']"
SOLACE = "kind: solace, url: 'tcp://h:55555', username: u"
YAMI4 = "kind: yami4, url: 'tcp://h:12345'"
ENDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mqtt-2": ("kind: mqtt, qos: 2", "a/#"),
        "mqtt-1": ("kind: mqtt, qos: 1", "a/#"),
        "mqtt-0": ("kind: mqtt, qos: 0", "a/#"),
        "jms-persistent": (f"{JMS}, delivery: persistent", "a.>"),
        "jms-reliable": (f"{JMS}, delivery: reliable", "a.>"),
        "solace-guaranteed": (f"{SOLACE}, guaranteed: true", "a/>"),
        "solace-direct": (f"{SOLACE}, guaranteed: false", "a/>"),
        "yami4-reject": (f"{YAMI4}, overflow_policy: reject_message", "a.*"),
        "yami4-drop": (f"{YAMI4}, overflow_policy: drop_update", "a.*"),
    }
)


def told() -> Iterator[tuple[str, str, str]]:
    """Source, target and word of each cell of the page's first table."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = list(itertools.takewhile(bool, lines[lines.index(start(lines)) :]))
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    for source, *words in rows:
        for target, word in zip(head[1:], words, strict=True):
            yield source, target, word


def start(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("| from"))


def test_every_pair_of_systems_has_its_cell() -> None:
    pairs = [(source, target) for source, target, _ in told()]

    assert pairs == list(itertools.product(ENDS, ENDS))


@pytest.mark.parametrize(("source", "target", "word"), list(told()))
def test_a_pair_is_guaranteed_what_the_page_says(
    tmp_path: Path, source: str, target: str, word: str
) -> None:
    (here, pattern), (there, _) = ENDS[source], ENDS[target]
    file = tmp_path / "gateway.yaml"
    file.write_text(
        f"endpoints:\n  here: {{{here}}}\n  there: {{{there}}}\n"
        f'routes:\n  r:\n    from: {{endpoint: here, pattern: "{pattern}"}}\n'
        "    to: {endpoint: there}\n"
    )
    configuration = load(file)
    (route,) = configuration.routes

    assert effective_mode(route, route.targets[0], configuration) is WORDS[word]


@pytest.mark.parametrize(
    ("section", "ref"), [("spool", SpoolRef), ("dead_letters", DeadLettersRef)]
)
def test_the_sections_of_the_page_name_every_key(
    section: str, ref: type[SpoolRef | DeadLettersRef]
) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```yaml\n")[1:]
    shown = [yaml.safe_load(block.split("```")[0]) for block in blocks]
    (given,) = [each[section] for each in shown if section in each]

    assert given.keys() == {field.name for field in fields(ref)}
