"""The sources of a gateway subscribe before its sinks send to the same broker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.listening import free_port
from gateway.trial.brokers.yami4 import Yami4Broker, Yami4BrokerOptions
from tests.brokers.controlled_smf import SmfBroker
from tests.runtime.gateway.running import BrokerClient, configured
from tests.waiting import PATIENCE, until

COUNT = 500
CONFIRMED = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
YAML = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant}}
  in: {{{middle}, backoff_min: 1000, backoff_max: 1000}}
  out: {{{middle}, backoff_min: 0.01, backoff_max: 0.02}}
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


def yami4() -> tuple[str, str, Callable[[], AbstractContextManager[object]]]:
    options = Yami4BrokerOptions(max_client_queue=COUNT)
    return 'kind: yami4, url: "unix://yami"', ".", lambda: Yami4Broker("unix://yami", options)


def solace() -> tuple[str, str, Callable[[], AbstractContextManager[object]]]:
    port = free_port()
    return f'kind: solace, url: "tcp://127.0.0.1:{port}"', "/", lambda: SmfBroker(port)


@pytest.mark.parametrize("system", [yami4, solace])
def test_a_backlog_reaches_our_source_at_a_broker_that_does_not_know_it(
    plant: BrokerClient,
    ems: BrokerClient,
    system: Callable[[], tuple[str, str, Callable[[], AbstractContextManager[object]]]],
) -> None:
    """The sink finds the broker, and the source need not wait for its own next attempt.

    A YAMI4 broker keeps nothing, and a Solace broker has no queue of the source yet.
    """
    middle, separator, broker = system()
    gateway = Gateway(configured(YAML.format(middle=middle, separator=separator)))
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
