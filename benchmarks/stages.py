"""Measures where the gateway's processor time goes: by the steps of a batch, for each shape.

    python -m benchmarks.stages [--shapes NAME ...] [--messages N]

A row is one step: how often it was called, and its microseconds for a message and for a call,
without the steps within it. A step is a function that is called for a batch, a block or a round
trip, so that measuring it costs little. The time is that of its thread on a processor: waits do not
count. `other` is the rest of the process.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any, Final

from benchmarks import relay
from benchmarks.columns import table
from benchmarks.processor import seconds
from gateway import cli
from gateway.archive.journal import writer
from gateway.archive.journal.rolling import RollingJournal
from gateway.endpoints.leader_followers import Leadership
from gateway.endpoints.mqtt.connection import MqttConnection
from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.endpoints.mqtt.publish_state import PublishState
from gateway.endpoints.mqtt.receive_state import ReceiveState
from gateway.endpoints.received_queue import ReceivedQueue
from gateway.endpoints.sockets import NonBlockingSocket
from gateway.runtime import relay as runtime_relay
from gateway.runtime.delivery.admission import Admission
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.pump import Pump
from gateway.trial.brokers.listening import free_port
from gateway.wire.mqtt.packets import PacketDecoder

STEPS: Final[dict[Any, tuple[str, ...]]] = {
    NonBlockingSocket: ("read", "write", "acknowledge"),
    Leadership: ("wait",),
    MqttConnection: ("serve",),
    PacketDecoder: ("feed",),
    ReceiveState: ("packets_received", "_confirm"),
    ReceivedQueue: ("put", "take", "_settle"),
    Pump: ("_receive_once",),
    runtime_relay.Relay: ("relay",),
    Admission: ("recognise", "match"),
    runtime_relay: ("distribute", "make_copies"),
    OutboundBatch: ("__init__",),
    Lane: ("deliver", "_answered"),
    PublishState: ("_write_all", "_reserve_ids", "packets_received"),
    PublishEncoder: ("take",),
    ReceivedBatch: ("__init__", "received", "received_rows", "delivered_rows", "answered"),
    InFlightBatch: ("relayed", "_release", "_settle"),
    writer: ("pack",),
    writer.ArchiveWriter: ("_commit",),
    RollingJournal: ("write",),
}
WARM: Final = 3_000  # messages before
POLL: Final = 0.05  # seconds
LEAST: Final = 0.01  # of the whole; a step below is part of `other`


class Stopwatch:
    """The steps so far: calls, and nanoseconds without the steps within them.

    Mutable: every thread adds; a lost addition of two at once does not matter.
    """

    def __init__(self) -> None:
        self.steps: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._own = threading.local()

    def measure(self, owner: Any, name: str) -> None:  # noqa: ANN401  # a class or a module
        """Measure each call of a function from now on."""
        label = f"{owner.__name__.rpartition('.')[2]}.{name}"
        setattr(owner, name, self.measured(label, getattr(owner, name)))

    def measured(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, and is measured."""

        @wraps(function)
        def step(*args: Any, **options: Any) -> Any:  # noqa: ANN401  # those of the function
            within: list[int] = self._own.__dict__.setdefault("within", [0])
            within.append(0)
            began = time.thread_time_ns()
            try:
                return function(*args, **options)
            finally:
                spent = time.thread_time_ns() - began
                found = self.steps[label]
                found[0] += 1
                found[1] += spent - within.pop()
                within[-1] += spent

        return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=60_000)
    parser.add_argument(
        "--shapes", nargs="*", default=["qos 0", "qos 1", "MQTT 5, 20 in flight", "64 KB"],
        choices=list(relay.SHAPES),
    )  # fmt: skip
    parser.add_argument("--gateway", nargs=2, metavar=("CONFIG", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.gateway:
        _run_gateway(*args.gateway)
        return
    for name in args.shapes:
        print(f"{name}:\n{table(measure(relay.SHAPES[name], args.messages))}", flush=True)


def _run_gateway(config: str, file: str) -> None:
    watch = Stopwatch()
    for owner, names in STEPS.items():
        for name in names:
            watch.measure(owner, name)
    threading.Thread(target=_begin_again, args=(watch, Path(file)), daemon=True).start()
    sys.argv = ["gateway", "run", config]
    try:
        cli.main()
    finally:
        Path(file).write_text(json.dumps(watch.steps))


def _begin_again(watch: Stopwatch, asked: Path) -> None:
    """Forget the steps of the start and the warm-up when a file asks for it."""
    while not asked.exists():
        time.sleep(POLL)
    watch.steps.clear()
    asked.unlink()


def measure(shape: relay.Shape, messages: int) -> list[dict[str, object]]:
    """Return the rows of one shape, the largest first."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        found = folder / "steps.json"
        with ExitStack() as stack:
            ports = free_port(), free_port()
            for port in ports:
                stack.enter_context(relay.broker(folder, port, inflight=shape.inflight))
            *_, config = relay.relay_command("gateway", folder, *ports, shape)
            command = [sys.executable, "-m", "benchmarks.stages", "--gateway", config, str(found)]
            gateway = stack.enter_context(relay.running(command))
            load = [sys.executable, str(relay.HERE / "relay_load.py"), *shape.load]
            load += ["--from-port", str(ports[0]), "--to-port", str(ports[1])]
            number = shape.messages(messages)
            load += ["--warmup", str(relay.WARMUP), "--messages"]
            relay.run_load([*load, str(min(number, WARM))])
            found.touch()
            while found.exists():
                time.sleep(POLL)
            before = seconds(gateway.pid)
            relay.run_load([*load, str(number)])
            whole = 1e6 * (seconds(gateway.pid) - before) / (number + relay.WARMUP)
        steps = json.loads(found.read_text())
    return rows(steps, whole, number + relay.WARMUP)


def rows(steps: dict[str, list[int]], whole: float, messages: int) -> list[dict[str, object]]:
    """Return a row for each step, of `messages` that took `whole` microseconds each."""
    shown = sorted(steps.items(), key=lambda each: -each[1][1])
    made: list[dict[str, object]] = []
    left = whole
    for name, (calls, spent) in shown:
        each = spent / 1e3 / messages
        if each >= LEAST * whole:
            left -= each
            made.append(
                {
                    "step": name,
                    "calls": calls,
                    "us a message": round(each, 2),
                    "us a call": round(spent / 1e3 / calls, 1),
                }
            )
    made.append({"step": "other", "us a message": round(left, 2)})
    made.append({"step": "all", "us a message": round(whole, 2)})
    return made


if __name__ == "__main__":
    main()
