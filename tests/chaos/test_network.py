"""A network that resets, stalls or half-closes connections on either side of a gateway."""

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
from tests.chaos.archived import check_complete, read_archive
from tests.chaos.rig import RelayConfig, load_and_witness, repetitions, running

pytestmark = pytest.mark.broker

SHORT_KEEPALIVE = ", keepalive: 1"  # seconds; a stall is noticed after 1.5 s
STALL_SECONDS = (0.2, 3.0)  # shorter and longer than the keep-alive

BREAKS: Mapping[str, Callable[[Wire], object]] = MappingProxyType(
    {
        "reset": Wire.cut,
        "stall": Wire.stall,
        "broker closes": lambda wire: wire.half_close(broker=False),
        "gateway closes": lambda wire: wire.half_close(broker=True),
    }
)


@repetitions(2, 20)
@pytest.mark.parametrize(
    ("kind", "spool"),
    [
        ("reset", ""),
        pytest.param("reset", None, marks=pytest.mark.chaos),
        pytest.param("stall", "", marks=pytest.mark.chaos),
        pytest.param("broker closes", "", marks=pytest.mark.chaos),
        pytest.param("gateway closes", None, marks=pytest.mark.chaos),
    ],
)
def test_a_broken_network_loses_no_message_and_keeps_the_order(
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
        config = RelayConfig(
            tmp_path,
            near.port,
            far.port,
            source_settings=SHORT_KEEPALIVE,
            target_settings=SHORT_KEEPALIVE,
            spool=spool,
        )
        with running(config.write()) as gateway:
            load.start()
            for wire in [near] * times + [far] * times:
                tick.wait(chance.uniform(0.1, 0.5))
                BREAKS[kind](wire)
                tick.wait(chance.uniform(*STALL_SECONDS) if kind == "stall" else 0)
                wire.flow()
            sent = load.finish()
            witness.wait_for(sent)
            witness.check_order(sent)
            assert gateway.end() == 0

    check_complete(read_archive(tmp_path), sent)
