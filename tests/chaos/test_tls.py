"""Kills of the gateway and restarts of both brokers while all its connections are encrypted."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.test_mqtt_tls import make_certificate
from tests.chaos.archived import check_marked, read_archive
from tests.chaos.rig import RelayConfig, end_after_all, load_and_witness, repetitions, running

pytestmark = pytest.mark.broker

RATE = 500  # messages a second
MAX_RUN = 0.8  # seconds between two faults


def encrypted(start: StartMosquitto, folder: Path) -> tuple[Mosquitto, int]:
    """Start a broker that listens twice; return it and its port with TLS."""
    port = free_port()
    broker = start(
        "allow_anonymous true", f"listener {port} 127.0.0.1", f"cafile {folder}/authority.pem",
        f"certfile {folder}/broker.pem", f"keyfile {folder}/broker.key", "allow_anonymous true",
    )  # fmt: skip
    return broker, port


@repetitions(None, 40)
def test_faults_of_encrypted_connections_lose_no_message(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    make_certificate(tmp_path, "authority", None)
    make_certificate(tmp_path, "broker", "authority", "subjectAltName=IP:127.0.0.1")
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    source, source_port = encrypted(start_mosquitto, tmp_path)
    target, target_port = encrypted(start_mosquitto, tmp_path)
    tls = f", tls: {{ca_file: {tmp_path}/authority.pem}}"
    config = RelayConfig(
        tmp_path, source_port, target_port, source_settings=tls, target_settings=tls
    ).write()
    tick = threading.Event()
    with load_and_witness(source.port, target.port, RATE) as (load, witness):
        with running(config):  # the broker keeps the session from now on
            load.start()
        for number in range(times):
            with running(config):
                tick.wait(chance.uniform(0, MAX_RUN))
                if number % 2:
                    stopped = chance.choice([source, target])
                    stopped.stop()
                    tick.wait(chance.uniform(0, MAX_RUN))
                    stopped.start()
        with running(config) as gateway:
            end_after_all(gateway, load, witness)

    check_marked(read_archive(tmp_path), witness.duplicates)
