"""At a broker that keeps nothing, the sources of a gateway subscribe before its sinks send."""

from __future__ import annotations

from gateway.model.message import Message
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.yami4 import Yami4Broker, Yami4BrokerOptions
from tests.runtime.gateway.running import BrokerClient, configured
from tests.waiting import PATIENCE, until

COUNT = 500
BROKER = "unix://yami"
YAML = """\
gateway: {name: test}
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: plant}
  in: {kind: yami4, url: "unix://yami", backoff_min: 1000, backoff_max: 1000}
  out: {kind: yami4, url: "unix://yami", backoff_min: 0.01, backoff_max: 0.02}
  ems: {kind: memory, dialect: ems, broker: ems}
spool: {path: spool}
routes:
  to-yami:
    from: {endpoint: plant, pattern: "a/{rest...}"}
    to: {endpoint: out, template: "a.{rest...}"}
  from-yami:
    from: {endpoint: in, pattern: "a.{rest...}"}
    to: {endpoint: ems, template: "a.{rest...}"}
"""


def test_a_backlog_reaches_our_source_at_a_broker_that_keeps_nothing(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    """The sink finds the broker, and the source need not wait for its own next attempt."""
    gateway = Gateway(configured(YAML))
    gateway.start()
    try:
        until(lambda: gateway.pumps["plant"].state.connection.value == "connected")
        plant.publish(*(Message(f"a/{number}", b"x") for number in range(COUNT)))
        until(lambda: gateway.counters["to-yami"].spooled == COUNT)
        with Yami4Broker(BROKER, Yami4BrokerOptions(max_client_queue=COUNT)):
            got = ems.receive(COUNT)
            gateway.stop(PATIENCE)
    finally:
        gateway.stop(0)

    assert len({message.address for message in got}) == COUNT
