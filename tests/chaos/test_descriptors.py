"""A gateway that may open few files, from its start: it neither loses a message nor stops."""

from __future__ import annotations

import resource
import signal
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Process
from tests.chaos.archived import check_complete, read_archive
from tests.chaos.rig import RelayConfig, end_after_all, load_and_witness, repetitions
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

VISITORS = 100  # connections to the page from addresses of their own; the gateway holds 32


@repetitions(None, 60)
@pytest.mark.parametrize("limit", [64, 48], ids=["enough", "visitors-take-all"])
def test_a_gateway_with_few_descriptors_loses_no_message(
    tmp_path: Path, start_mosquitto: StartMosquitto, limit: int, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    port = free_port()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    config.write_text(f"{config.read_text()}web: {{port: {port}}}\n")
    with load_and_witness(source.port, target.port) as (load, witness), ExitStack() as stack:
        gateway = Process(config)
        stack.callback(gateway.end, signal.SIGKILL)
        resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        gateway.connected()
        for number in range(VISITORS):
            with suppress(OSError):  # refused, as there is no descriptor
                origin = (f"127.0.1.{number}", 0)
                peer = socket.create_connection(("127.0.0.1", port), PATIENCE, origin)
                stack.callback(peer.close)
        for number in range(times):
            load.publish((number + 1) * 1_000)
            target.stop()
            load.publish((number + 1) * 1_000 + 500)
            target.start()
        sent = end_after_all(gateway, load, witness)

    check_complete(read_archive(tmp_path), sent)
