"""A target behind a slow link answers late, and does not count as stuck."""

from __future__ import annotations

from time import monotonic

import pytest

from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.runtime.outbound import lane
from tests.brokers.mosquitto import StartMosquitto
from tests.endpoints.proxies import SlowLink
from tests.runtime.gateway.running import BrokerClient, configured, wait_until_connected
from tests.waiting import PATIENCE, until

STUCK_AFTER = 60.0  # seconds, as by default
STEP, STEP_SECONDS = 1 << 20, 12.0  # 87 KB/s: an answer to 5 MB would come too late
TO_FAR = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant}}
  far: {{kind: mqtt, host: 127.0.0.1, port: {port}, version: "3.1.1"}}
routes:
  far:
    from: {{endpoint: plant, pattern: "a/{{rest...}}"}}
    to: {{endpoint: far, template: "a/{{rest...}}"}}
"""


class Clock:
    """The clock of a lane: it stands still between the steps of a test. Mutable."""

    def __init__(self) -> None:
        self.now = monotonic()

    def __call__(self) -> float:
        return self.now


def test_a_batch_that_takes_minutes_over_a_slow_link_is_not_stuck(
    plant: BrokerClient, start_mosquitto: StartMosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, link = Clock(), SlowLink(start_mosquitto().port)
    monkeypatch.setattr(lane, "monotonic", clock)
    gateway = Gateway(configured(TO_FAR.format(port=link.port)))
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
    batch = [Message(f"a/{number}", bytes(64 << 10), headers) for number in range(300)]
    link.let(1_000)  # for the log-in
    gateway.start()
    try:
        wait_until_connected(gateway)
        target = gateway.lanes["far"]
        plant.publish(*batch)
        while target.state.messages < len(batch):
            until(lambda: link.is_spent or target.state.messages == len(batch))
            clock.now += STEP_SECONDS
            link.let(STEP)
            until(lambda: target.silence < STUCK_AFTER, "no answer: it counts as stuck")
    finally:
        link.close()
        gateway.stop(PATIENCE)

    assert link.connections == 1
