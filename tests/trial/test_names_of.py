"""Names that come back by the header of a copy: a gateway with memory in place of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from gateway.endpoints.memory import find_broker
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import Message
from gateway.trial.first_try import Trial, running, tried
from tests.config.test_names_of import ENDPOINTS, NAME, OUT


@contextmanager
def started(folder: Path, routes: str) -> Iterator[tuple[Trial, dict[str, list[Message]]]]:
    """Run a gateway over memory brokers; yield it, and what arrives at each endpoint."""
    file = folder / "gateway.yaml"
    file.write_text(f"{ENDPOINTS}routes:\n{routes}")
    arrived: dict[str, list[Message]] = {}
    configuration = tried(file, folder, archive=True)
    with running(configuration, lambda _line: None) as trial:
        for endpoint in configuration.endpoints.values():
            assert isinstance(endpoint.settings, MemorySettings)
            broker = find_broker(endpoint.settings)
            broker.arrived = partial(_note, broker.arrived, arrived)
        yield trial, arrived


def _note(
    more: Callable[[str, Sequence[Message]], None],
    arrived: dict[str, list[Message]],
    name: str,
    messages: Sequence[Message],
) -> None:
    arrived.setdefault(name, []).extend(messages)
    more(name, messages)


def test_a_copy_carries_the_name_at_its_source(tmp_path: Path) -> None:
    with started(tmp_path, OUT) as (trial, arrived):
        trial.send(f"{NAME} x")
        trial.send(f"{NAME} y")

    assert [
        (each.address, each.payload, each.headers.properties["gateway_name"])
        for each in arrived["lake"]
    ] == [("plant:7", b"x", NAME), ("plant:7", b"y", NAME)]
