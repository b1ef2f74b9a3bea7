"""A network that resets, stalls and half-closes the connections on either side of a gateway."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.wire import Wire
from tests.chaos.books import are_whole, read_books
from tests.chaos.rig import Setting, load_and_witness, profiles, running

pytestmark = pytest.mark.broker

QUICK = ", keepalive: 1"  # seconds; a stall is noticed after 1.5 of them
STALLS = (0.2, 3.0)  # seconds: some pass unnoticed, some do not

BREAKS: Mapping[str, Callable[[Wire], object]] = MappingProxyType(
    {
        "reset": Wire.cut,
        "stall": Wire.stall,
        "broker hangs up": lambda wire: wire.half_close(broker=False),
        "gateway hangs up": lambda wire: wire.half_close(broker=True),
    }
)


@profiles(2, 20)
@pytest.mark.parametrize(
    ("kind", "spool"),
    [
        ("reset", ""),
        ("reset", None),
        ("stall", ""),
        ("broker hangs up", ""),
        ("gateway hangs up", None),
    ],
)
def test_a_broken_network_loses_nothing_and_keeps_the_order(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int, kind: str, spool: str | None
) -> None:
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    tick = threading.Event()
    source, target = start_mosquitto(), start_mosquitto()
    with (
        closing(Wire(source.port)) as near,
        closing(Wire(target.port)) as far,
        load_and_witness(source.port, target.port, 2_000) as (load, witness),
    ):
        setting = Setting(
            tmp_path, near.port, far.port, from_more=QUICK, to_more=QUICK, spool=spool
        )
        with running(setting.write()) as gateway:
            load.start()
            for wire in [near] * times + [far] * times:
                tick.wait(chance.uniform(0.1, 0.5))
                BREAKS[kind](wire)
                tick.wait(chance.uniform(*STALLS) if kind == "stall" else 0)
                wire.flow()
            sent = load.finish()
            witness.wait_for(sent)
            witness.has_all_in_order(sent)
            assert gateway.end() == 0

    are_whole(read_books(tmp_path), sent)
