"""The lease moves while the retained messages of a target are restored: the next holder has all."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.model.message import DeliveryMode, Headers, Message
from tests.brokers.mosquitto import OPEN, Mosquitto, StartMosquitto
from tests.brokers.test_restore_retained import at, kept
from tests.chaos.rig import repetitions
from tests.chaos.test_takeovers import Pair, direct
from tests.endpoints.exchange import collect, opened, send

pytestmark = pytest.mark.broker

RESTORES = "restore_retained: true, rate: 40"
LAMPS = 120  # three seconds of that rate
RETAINED = Headers(mode=DeliveryMode.AT_LEAST_ONCE, retained=True)


class Restored:
    """The sign that `Pair.take_over` waits for: the new holder has restored all."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def arrived(self, since: float) -> bool:
        del since
        holder = self._pair.holder
        return bool(holder) and self._pair.processes[holder].logged(
            "retained messages are restored"
        )

    def pause(self, begun: float) -> float:
        del begun
        return 0.0


def lose_all(target: Mosquitto) -> None:
    target.kill()
    (target.folder / "mosquitto.db").unlink(missing_ok=True)
    target.start()


@pytest.mark.nightly
@pytest.mark.timeout(900)
@repetitions(short=1, long=10)
def test_the_next_holder_restores_what_the_last_one_had_begun(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    plant, hub = start_mosquitto(), start_mosquitto(*OPEN)
    lamps = {(f"src/{number}", b"%d" % number) for number in range(LAMPS)}
    with opened(publisher := make_sink(at(plant.port))):
        send(publisher, *(Message(name, payload, RETAINED) for name, payload in sorted(lamps)))
    mapping = direct(plant.port, hub.port).replace(
        f"port: {hub.port},", f"port: {hub.port}, {RESTORES},"
    )
    pair = Pair(tmp_path, mapping)
    wanted = {(name.replace("src", "dst"), payload) for name, payload in lamps}
    try:
        for how in ("handover", "SIGKILL", "SIGSTOP") * times:
            pair.standby_waits()
            lose_all(hub)
            with opened(reader := make_source(at(hub.port), [Subscription("dst/#")])):
                collect(reader, 1)  # of those that are sent again
            pair.take_over(how, Restored(pair))
            assert kept(at(hub.port), LAMPS, "dst/#") == wanted, pair.log()
        pair.stop()
    finally:
        pair.end()
