"""The sources of a gateway subscribe before its sinks send to the same broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TypeAlias

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.memory import InboundQueue, MemoryBroker
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.runtime.record.counters import RouteCounters
from gateway.trial.brokers.listening import free_port
from gateway.trial.brokers.yami4 import Yami4Broker, Yami4BrokerOptions
from tests.brokers.controlled_smf import SmfBroker
from tests.runtime.gateway.running import BrokerClient, configured, running
from tests.waiting import PATIENCE, until

COUNT = 500
CONFIRMED = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
YAML = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant}}
  in: {{{middle}, backoff_min: 1000, backoff_max: 1000}}
  out: {{{same}, backoff_min: 0.01, backoff_max: 0.02}}
  ems: {{kind: memory, dialect: ems, broker: ems}}
spool: {{path: spool}}
routes:
  there:
    from: {{endpoint: plant, pattern: "a/{{rest...}}"}}
    to: {{endpoint: out, template: "a{separator}{{rest...}}"}}
  back:
    from: {{endpoint: in, pattern: "a{separator}{{rest...}}"}}
    to: {{endpoint: ems, template: "a.{{rest...}}"}}
"""


# The settings of the source and of the sink, a separator, and a maker of their broker.
System: TypeAlias = tuple[str, str, str, Callable[[], AbstractContextManager[object]]]


def yami4() -> System:
    options = Yami4BrokerOptions(max_client_queue=COUNT)
    middle = 'kind: yami4, url: "unix://yami"'
    return middle, middle, ".", lambda: Yami4Broker("unix://yami", options)


def solace() -> System:
    port = free_port()
    middle = f'kind: solace, url: "tcp://127.0.0.1:{port}"'
    return middle, middle, "/", lambda: SmfBroker(port)


def solace_at_two_addresses() -> System:
    middle, _, separator, broker = solace()
    middle += ", broker_id: middle"
    return middle, middle.replace("127.0.0.1", "localhost"), separator, broker


@pytest.mark.parametrize("system", [yami4, solace, solace_at_two_addresses])
def test_a_backlog_reaches_our_source_at_a_broker_that_does_not_know_it(
    plant: BrokerClient,
    ems: BrokerClient,
    system: Callable[[], System],
) -> None:
    """The sink finds the broker, and the source need not wait for its own next attempt.

    A YAMI4 broker keeps nothing, and a Solace broker has no queue of the source yet.
    """
    middle, same, separator, broker = system()
    gateway = Gateway(configured(YAML.format(middle=middle, same=same, separator=separator)))
    gateway.start()
    try:
        until(lambda: gateway.pumps["plant"].state.connection.value == "connected")
        plant.publish(*(Message(f"a/{number}", b"x", CONFIRMED) for number in range(COUNT)))
        until(lambda: gateway.counters["there"].spooled == COUNT)
        until(lambda: gateway.pumps["in"].state.reason != "")
        with broker():
            got = ems.receive(COUNT)
            gateway.stop(PATIENCE)
    finally:
        gateway.stop(0)

    assert len({message.address for message in got}) == COUNT


CHAIN_ENDPOINTS = """\
gateway: {name: test, stop_seconds: 600}
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: plant}
  middle: {kind: memory, dialect: mqtt, broker: middle}
  in: {kind: memory, dialect: mqtt, broker: middle}
  ems: {kind: memory, dialect: ems, broker: ems}
routes:
  all:
    from: {endpoint: plant, pattern: "{rest...}"}
    to: {endpoint: middle, template: "all/{rest...}"}
"""
READ_BEFORE = """\
  before:
    from: {endpoint: in, pattern: "before/{rest...}"}
    to: {endpoint: ems, template: "before.{rest...}"}
"""
CHAIN = """\
  there:
    from: {endpoint: plant, pattern: "start/{rest...}"}
    to: {endpoint: middle, template: "a/{rest...}"}
  back:
    from: {endpoint: in, pattern: "a/{rest...}"}
    to: {endpoint: ems, template: "a.{rest...}"}
"""


class Gate:
    """Lets no source subscribe to `a/#` at a broker in memory until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()
        original = MemoryBroker.attach

        def attach(
            broker: MemoryBroker, name: str, capacity: int, subscriptions: Sequence[Subscription]
        ) -> InboundQueue:
            if any(each.pattern == "a/#" for each in subscriptions):
                self.reached.set()
                assert self.opened.wait(PATIENCE)
            return original(broker, name, capacity, subscriptions)

        monkeypatch.setattr(MemoryBroker, "attach", attach)


def has_delivered(counters: RouteCounters, count: int) -> bool:
    return counters.delivered == count


@contextmanager
def reloading(gateway: Gateway, yaml: str) -> Iterator[threading.Thread]:
    """Reload in a thread, because a reload waits for its sources."""
    thread = threading.Thread(target=gateway.reload, args=(configured(yaml),))
    thread.start()
    yield thread
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.parametrize("before", ["", READ_BEFORE], ids=["new-source", "new-subscription"])
def test_a_reload_adds_both_halves_of_a_chain(
    plant: BrokerClient, ems: BrokerClient, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """The first half takes effect when the second one reads; other routes go on meanwhile."""
    with running(CHAIN_ENDPOINTS + before) as gateway:
        # a target that connects during the reload waits for the second half itself
        until(lambda: gateway.lanes["middle"].direct)
        gate = Gate(monkeypatch)
        with reloading(gateway, CHAIN_ENDPOINTS + before + CHAIN):
            assert gate.reached.wait(PATIENCE)
            for count in (1, 2, 3):  # the pump may have begun to receive before the reload
                plant.publish(Message("start/0", b"x"))
                until(partial(has_delivered, gateway.counters["all"], count))
            early = gateway.counters["there"].received
            gate.opened.set()
        plant.publish(Message("start/1", b"x"))
        (got,) = ems.receive(1)

    assert (early, got.address) == (0, "a.1")


def test_a_reload_adds_a_chain_whose_first_source_is_new(
    plant: BrokerClient, ems: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new source subscribes, and receives when the second half reads."""
    yaml = CHAIN_ENDPOINTS.replace("endpoint: plant", "endpoint: ems").replace("{rest...}", "x")
    with running(yaml) as gateway:
        gate = Gate(monkeypatch)
        with reloading(gateway, yaml + CHAIN):
            assert gate.reached.wait(PATIENCE)
            until(lambda: gateway.pumps["plant"].state.connection.value == "connected")
            plant.publish(Message("start/0", b"x"))
            gate.opened.set()
        (got,) = ems.receive(1)

    assert got.address == "a.0"


def test_two_sources_of_a_reload_do_not_wait_for_each_other(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    """Each reads what the other sends; a wait would last `stop_seconds`, ten minutes."""
    both = """\
  answers:
    from: {endpoint: in, pattern: "c/{rest...}"}
    to: {endpoint: plant, template: "d/{rest...}"}
  requests:
    from: {endpoint: plant, pattern: "c/{rest...}"}
    to: {endpoint: middle, template: "c/{rest...}"}
"""
    narrow = CHAIN_ENDPOINTS.replace('pattern: "{rest...}"', 'pattern: "b/{rest...}"')
    with running(narrow + READ_BEFORE) as gateway:
        with reloading(gateway, narrow + READ_BEFORE + both):
            pass
        plant.publish(Message("c/1", b"x"))
        assert [each.address for each in plant.receive(2)] == ["c/1", "d/1"]
    assert ems.receive_available() == []
