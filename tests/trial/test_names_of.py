"""Names that come back by the header of a copy: a gateway with memory in place of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from gateway.config.build_endpoint import Endpoint
from gateway.config.load import Configuration
from gateway.endpoints.memory import MemoryBroker, find_broker
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import Message
from gateway.runtime.endpoint_uses import keeps_connection, source_parameters
from gateway.trial.first_try import Trial, running, tried
from tests.archived import archived
from tests.config.test_names_of import BACK, ENDPOINTS, FORGED, NAME, OUT, configuration, copied
from tests.waiting import until


class Running(NamedTuple):
    """A gateway over memory brokers, and what arrives at each endpoint."""

    trial: Trial
    configuration: Configuration
    arrived: dict[str, list[Message]]


@contextmanager
def started(folder: Path, routes: str) -> Iterator[Running]:
    """Run a gateway over memory brokers."""
    file = folder / "gateway.yaml"
    file.write_text(f"{ENDPOINTS}routes:\n{routes}")
    arrived: dict[str, list[Message]] = {}
    tried_here = tried(file, folder, archive=True)
    with running(tried_here, lambda _line: None) as trial:
        for endpoint in tried_here.endpoints.values():
            broker = _broker(endpoint)
            broker.arrived = partial(_note, broker.arrived, arrived)
        yield Running(trial, tried_here, arrived)


def _broker(endpoint: Endpoint) -> MemoryBroker:
    assert isinstance(endpoint.settings, MemorySettings)
    return find_broker(endpoint.settings)


def _note(
    more: Callable[[str, Sequence[Message]], None],
    arrived: dict[str, list[Message]],
    name: str,
    messages: Sequence[Message],
) -> None:
    arrived.setdefault(name, []).extend(messages)
    more(name, messages)


def test_a_copy_carries_the_name_at_its_source(tmp_path: Path) -> None:
    with started(tmp_path, OUT) as (trial, _, arrived):
        trial.send(f"{NAME} x")
        trial.send(f"{NAME} y")

    assert [
        (each.address, each.payload, each.headers.properties["gateway_name"])
        for each in arrived["lake"]
    ] == [("plant:7", b"x", NAME), ("plant:7", b"y", NAME)]


def addressed(arrived: dict[str, list[Message]], endpoint: str) -> list[tuple[str, object]]:
    """Return address and carried name of each message that came to an endpoint."""
    return [
        (each.address, each.headers.properties.get("gateway_name"))
        for each in arrived.get(endpoint, ())
    ]


def test_a_name_comes_back_and_its_header_ends_there(tmp_path: Path) -> None:
    with started(tmp_path, OUT + BACK) as (trial, _, arrived):
        for name in (NAME, "plant/7/motor", "plant/7", "plant/8/motor"):
            trial.send(f"{name} x")

    assert [each for each, _ in addressed(arrived, "lake")] == [*["plant:7"] * 3, "plant:8"]
    assert addressed(arrived, "plant2") == [
        ("back/7/motor/temp.max", None),
        ("back/7/motor", None),
        ("back/7", None),
        ("back/8/motor", None),
    ]


def publish(configuration: Configuration, message: Message) -> None:
    """Publish a message of a stranger to the lake, and wait until it is settled."""
    broker = _broker(configuration.endpoints["lake"])
    _, shares = broker.distribute([message])
    for queue, share in shares.items():
        queue.put(share)
    until(lambda: broker.is_quiet, "a message is not settled")


def test_nobody_is_believed_beside_a_message_that_comes_back(tmp_path: Path) -> None:
    forged = [copied("plant:7", each.values[1]) for each in FORGED if each.values[0] == "plant:7"]
    out = OUT.replace('{rest...}"}', '{rest...}", exclude: ["plant/+/secret"]}')
    with started(tmp_path, out + BACK) as (_, here, arrived):
        for each in forged:
            publish(here, each)
            publish(here, copied("plant:7", NAME))

    assert addressed(arrived, "plant2") == [("back/7/motor/temp.max", None)] * len(forged)


def test_the_rows_have_topic_and_key_and_the_proven_name(tmp_path: Path) -> None:
    with started(tmp_path, OUT + BACK) as (trial, _, _):
        trial.send(f"{NAME} x")
    rows = [
        {key: each[key] for key in ("route", "leg", "name", "fields")}
        for each in archived(tmp_path)
        if each["route"] == "back"
    ]

    assert {(each["leg"], each["name"], each["fields"]) for each in rows} == {
        ("received", "plant:7", None),
        ("delivered", "back/7/motor/temp.max", f'{{"property.gateway_name": "{NAME}"}}'),
    }


def test_the_next_copy_carries_the_name_at_its_own_source(tmp_path: Path) -> None:
    again = """\
  again:
    from: {endpoint: plant2, pattern: "back/{rest...}"}
    to: {endpoint: lake, topic: again, key: "{rest...}"}
"""
    with started(tmp_path, OUT + BACK + again) as (trial, _, arrived):
        trial.send(f"{NAME} x")

    assert addressed(arrived, "lake") == [
        ("plant:7", NAME),
        ("again:7.motor.temp%2Emax", "back/7/motor/temp.max"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "topic"),
    [("topic: plant", "topic: plants", "plants"), ("plant/{line}", "line/{line}", "plant")],
)
def test_a_reload_that_changes_the_other_route_changes_this_one(
    tmp_path: Path, old: str, new: str, topic: str
) -> None:
    before = configuration(tmp_path, OUT + BACK)
    after = configuration(tmp_path, OUT.replace(old, new) + BACK)

    assert before.routes[1] != after.routes[1]
    assert configuration(tmp_path, OUT + BACK).routes[1] == before.routes[1]
    (wanted,) = source_parameters(after, "lake")[1]
    assert wanted.pattern == topic
    assert keeps_connection(before, after, "lake")


def test_a_line_tells_of_names_that_nothing_proves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with started(tmp_path, OUT + BACK) as (_, here, _):
        for _ in range(3):
            publish(here, copied("plant:7", "plant/8/forged"))
        publish(here, Message("plant:7", b""))

    told = [each.getMessage() for each in caplog.records if "did not prove" in each.getMessage()]
    assert told[0] == (
        "route 'back' did not take 1 message whose property 'gateway_name' it did not prove, and no"
        " other route did since the last such line, for example 'plant:7'"
    )
    assert [each for each in told[1:] if "2 messages" not in each] == []
