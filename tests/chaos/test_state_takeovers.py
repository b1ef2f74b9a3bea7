"""A pair tells a state: whoever ends how, the holder's "1" is what the broker retains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.test_states import retained
from tests.chaos.rig import repetitions
from tests.chaos.test_takeovers import Pair, direct
from tests.waiting import until

pytestmark = pytest.mark.broker

STATE = "state: {endpoint: target, of: source, name: bridge/plant-1/state}\n"


class ToldByHolder:
    """The sign that `Pair.take_over` waits for: the state of the new holder."""

    def __init__(self, hub: Mosquitto) -> None:
        self._hub = hub

    def arrived(self, since: float) -> bool:
        del since
        return retained(self._hub) == b"1"

    def pause(self, begun: float) -> float:
        del begun
        return 0.0


@pytest.mark.timeout(1_800)
@repetitions(short=1, long=20)
@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_the_retained_state_is_right_after_each_takeover(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str, times: int
) -> None:
    plant, hub = start_mosquitto(), start_mosquitto()
    pair = Pair(tmp_path, direct(plant.port, hub.port, version) + STATE)
    witness = ToldByHolder(hub)
    try:
        until(lambda: retained(hub) == b"1")
        for how in ("handover", "SIGKILL", "SIGSTOP") * times:
            pair.take_over(how, witness)
            pair.standby_waits()
            assert retained(hub) == b"1", pair.log()
        pair.stop()
    finally:
        pair.end()

    assert retained(hub) == b"0"
