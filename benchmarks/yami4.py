"""Measures the project's YAMI4 broker with broker, publisher and subscriber in three processes.

    python -m benchmarks.yami4 [--messages N] [--rate R] [--max-client-queue N] [--broker URL]

The publisher is paced by the broker and not by the subscriber. With a short `--max-client-queue`
messages are lost, and the same number of confirmed messages is reported for resending.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import resource
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from threading import Event
from typing import Any

from benchmarks.columns import printed_rows
from benchmarks.processor import per_message, seconds, written
from benchmarks.through import broker_process
from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4 import Yami4Sink, open_source
from gateway.model.message import NO_HEADERS, DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement

BATCH = 256
TAGS = 100
RECEIVE_TIMEOUT = 5.0  # seconds; later messages count as lost


def publish(url: str, count: int, size: int, rate: float, mode: DeliveryMode) -> float:
    """Send `count` messages, and return the seconds until the last one is settled.

    It sends in a thread that has never received: the answers of another would be read late once it
    sends no more, as it is expected to receive again.
    """
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(_publish, url, count, size, rate, mode).result()


def _publish(url: str, count: int, size: int, rate: float, mode: DeliveryMode) -> float:
    headers = NO_HEADERS if mode is DeliveryMode.AT_MOST_ONCE else Headers(mode=mode)
    payload = bytes(size)
    batches = [
        [Message(f"bench.t{n % TAGS}", payload, headers) for n in range(start, start + BATCH)]
        for start in range(0, BATCH * 8, BATCH)
    ]
    left = count // BATCH
    done = Event()
    retried = 0

    def settled(settlements: Sequence[Settlement]) -> None:
        nonlocal left, retried
        retried += sum(each.outcome is not Outcome.ACCEPTED for each in settlements)
        left -= 1
        if not left:
            done.set()

    with closing(Yami4Sink(Yami4Settings(url=url, rate=rate))) as sink:
        sink.open()
        start = time.perf_counter()
        for number in range(count // BATCH):
            sink.send(batches[number % len(batches)], settled)
        assert done.wait(60)
        if retried:
            print(f"retry: {retried}")
        return time.perf_counter() - start


def measure(url: str, broker: int, count: int, send: Callable[[], object]) -> dict[str, Any]:
    """Return the messages per second decoded by the subscriber, and the number of lost ones.

    `send` publishes them in a process of its own. `us` is the processor time per message: broker (0
    for one that is not ours), publisher and subscriber.
    """
    source = open_source(Yami4Settings(url=url), [Subscription("bench.*")])
    with closing(source):
        source.open()
        before = _spent(broker)
        sender = mp.get_context("fork").Process(target=_send_only, args=(send,), daemon=True)
        sender.start()
        received, first, last = 0, 0.0, 0.0
        while received < count and (batch := source.receive(RECEIVE_TIMEOUT)) is not None:
            last = time.perf_counter()
            first = first or last
            received += len(batch.messages)
            batch.settle([ACCEPTED] * len(batch.messages))
        sender.join()
        used = per_message(before, _spent(broker), count)
    return {
        "messages_per_s": round(received / (last - first or 1)),
        "lost": count - received,
        "us": written(used),
    }


def _send_only(send: Callable[[], object]) -> None:
    """Send in a process that Ctrl-C does not end: the benchmark ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    send()


def _spent(broker: int) -> list[float]:
    """Return the processor seconds so far: of the broker, of ended publishers, and of this one."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = children.ru_utime + children.ru_stime
    return [seconds(broker) if broker else 0.0, ended, time.process_time()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=256_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument(
        "--max-client-queue",
        type=int,
        default=1_000_000,
        help="queue of the project's broker, in messages",
    )
    parser.add_argument("--broker", help="URL of another broker")
    args = parser.parse_args()
    count = args.messages // BATCH * BATCH
    with printed_rows() as add, ExitStack() as stack:
        url, pid = args.broker, 0
        if url is None:
            queue = str(args.max_client_queue)
            url, pid = stack.enter_context(broker_process("yami4", "--max-client-queue", queue))
        for mode, name in (
            (DeliveryMode.AT_MOST_ONCE, "publish to subscriber, decoded"),
            (DeliveryMode.AT_LEAST_ONCE, "publish_confirm to subscriber, decoded"),
        ):
            send = partial(publish, url, count, args.size, args.rate, mode)
            figures = measure(url, pid, count, send)
            add({"path": name, **figures})
        alone = publish(url, count, args.size, args.rate, DeliveryMode.AT_LEAST_ONCE)
        name = "publish_confirm, pipelined, no subscriber"
        add({"path": name, "messages_per_s": round(count / alone), "lost": 0, "us": ""})


if __name__ == "__main__":
    main()
