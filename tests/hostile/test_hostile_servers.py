"""A hostile server costs a connection: no memory, no process, no message, no neighbour's time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.outcome import RETRY
from tests.brokers.hostile_servers import serving
from tests.brokers.nats_server import NatsServer, nats_command
from tests.brokers.rabbitmq_server import RabbitmqServer, Vhost
from tests.endpoints.exchange import opened, receive, say, send, wait_for_loss
from tests.hostile.behaviours import Cost, Hostile, HostileWire
from tests.hostile.nats_servers import NATS
from tests.hostile.neighbour import Neighbour
from tests.hostile.rabbitmq_servers import RABBITMQ
from tests.waiting import until

MOST: Final = 256 << 20  # bytes that a hostile server may make this process take
MOST_SECONDS: Final = 1.0  # of all but one message in a hundred of a neighbour
WIRES: Final = (NATS, RABBITMQ)
CASES: Final = [
    pytest.param(wire, each, id=f"{wire.kind}-{each.name}")
    for wire in WIRES
    for each in wire.behaviours
]


class Peak:
    """The most memory of this process since now."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets the peak
        self._before = self._read()

    def bytes(self) -> int:
        return self._read() - self._before

    @staticmethod
    def _read() -> int:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found
        return int(found[1]) << 10


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbour]:
    pytest.importorskip("nats")
    server = NatsServer(nats_command(), tmp_path_factory.mktemp("nats"), [])
    server.start()
    settings = NatsSettings(url=server.url, stream="T", create_stream=True, subjects=("t.>",))
    yield from _running(settings, NATS)
    server.kill()


@pytest.fixture(scope="module")
def rabbitmq_neighbour(session_rabbitmq: RabbitmqServer) -> Iterator[Neighbour]:
    vhost: Vhost = Vhost(session_rabbitmq, "neighbour")
    vhost.api("PUT", "vhosts")
    yield from _running(vhost.settings, RABBITMQ)
    vhost.api("DELETE", "vhosts")


def _running(settings: EndpointSettings, wire: HostileWire) -> Iterator[Neighbour]:
    neighbour = Neighbour(source_of(settings, wire), make_sink(settings))
    with neighbour.running():
        yield neighbour
    quick = sorted(neighbour.seconds)
    assert quick[len(quick) * 99 // 100] < MOST_SECONDS


@pytest.fixture
def neighbour(wire: HostileWire, request: pytest.FixtureRequest) -> Neighbour:
    found: Neighbour = request.getfixturevalue(
        {"nats": "nats", "rabbitmq": "rabbitmq_neighbour"}[wire.kind]
    )
    return found


def source_of(settings: EndpointSettings, wire: HostileWire) -> Source:
    return make_source(settings, [Subscription(wire.pattern)], instance="r")


def refuse(*endpoints: Source | Sink) -> None:
    for endpoint in endpoints:
        with pytest.raises(EndpointError, match=r"^(nats|rabbitmq): "):
            endpoint.open()


def log_in(settings: EndpointSettings, wire: HostileWire) -> None:
    refuse(source_of(settings, wire), make_sink(settings))


def open_source(settings: EndpointSettings, wire: HostileWire) -> None:
    refuse(source_of(settings, wire))


def read(settings: EndpointSettings, wire: HostileWire) -> None:
    with opened(source := source_of(settings, wire)):
        wait_for_loss(source)
        for loss in source.continuity.take_losses():  # type: ignore[attr-defined]  # of these kinds
            assert (loss.messages or 0) < 1 << 63


def write(settings: EndpointSettings, _wire: HostileWire) -> None:
    with opened(sink := make_sink(settings)):
        try:
            assert send(sink, say(1)) == [RETRY]
        except NotConnectedError:
            return
        until(lambda: _is_lost(sink), "the sink is still connected")


def _is_lost(sink: Sink) -> bool:
    try:
        sink.send([], lambda _settlements: None)
    except NotConnectedError:
        return True
    return False


def read_on(settings: EndpointSettings, wire: HostileWire) -> None:
    with opened(source := source_of(settings, wire)):
        while b"honest" not in [each.payload for each in receive(source).messages]:
            pass


COSTS: Final = MappingProxyType(
    {
        Cost.LOG_IN: log_in,
        Cost.SOURCE: open_source,
        Cost.READING: read,
        Cost.SENDING: write,
        Cost.NOTHING: read_on,
    }
)


@pytest.mark.parametrize(("wire", "hostile"), CASES)
def test_a_hostile_server_costs_no_more_than_a_connection(
    wire: HostileWire, hostile: Hostile, neighbour: Neighbour
) -> None:
    peak = Peak()
    with serving(hostile.behave) as port:
        COSTS[hostile.cost](wire.settings(port), wire)
    neighbour.check()
    assert peak.bytes() < MOST


def test_a_server_that_is_full_again_and_again_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (found,) = [each for each in RABBITMQ.behaviours if each.name == "blocked-again-and-again"]
    with serving(found.behave) as port:
        read_on(RABBITMQ.settings(port), RABBITMQ)
    assert "takes no messages now" in caplog.text
    assert len(caplog.records) < 10


@pytest.mark.parametrize("wire", WIRES, ids=[each.kind for each in WIRES])
def test_each_wire_format_has_many_behaviours(wire: HostileWire) -> None:
    names = [each.name for each in wire.behaviours]
    assert len(names) == len({*names}) >= 38
