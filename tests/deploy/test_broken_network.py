"""A gateway in a container whose target is cut off or paused: nothing is lost, all in order."""

from __future__ import annotations

import pytest

from tests.deploy.test_image_run import Bridge, bridge, numbers, publish
from tests.waiting import PATIENCE

__all__ = ["bridge"]  # a fixture

pytestmark = [pytest.mark.nightly, pytest.mark.broker]

SESSION = ("mosquitto_sub", "-i", "reader", "-c", "-q", "1", "-t", "dst/#")
BREAKS = [
    pytest.param(
        "network disconnect {net} {host}",
        "network connect --alias far {net} {host}",
        id="cut-off",  # packets are lost, and no connection is closed
    ),
    pytest.param("pause {host}", "unpause {host}", id="paused"),
]


@pytest.mark.parametrize(("breaks", "mends"), BREAKS)
def test_messages_wait_for_a_host_that_is_away(
    bridge: Bridge, net: str, breaks: str, mends: str
) -> None:
    def run(command: str) -> None:
        bridge.far.engine.run(*command.format(net=net, host=bridge.far.name).split())

    bridge.far.exec(*SESSION, "-E")  # the broker keeps what arrives for it
    publish(bridge.near, numbers(0, 100))
    run(breaks)
    publish(bridge.near, numbers(100, 400))
    bridge.gateway.wait(lambda: bridge.get("/readyz") == 503)
    assert bridge.get("/healthz") == 200

    run(mends)
    publish(bridge.near, numbers(400, 500))
    bridge.gateway.wait(lambda: bridge.get("/readyz") == 200)
    # Copies that were on their way at the break may come twice, before the last message.
    arrived: list[str] = []
    while len(set(arrived)) < 500:
        reading = ("-C", str(500 - len(set(arrived))), "-W", f"{PATIENCE / 2:.0f}")
        arrived += bridge.far.exec(*SESSION, *reading).splitlines()
    assert list(dict.fromkeys(arrived)) == [str(number) for number in range(500)]
