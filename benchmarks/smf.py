"""Measures the SMF broker with raw sockets, and the Solace endpoint and bare loops of the library.

Run with `python -m benchmarks.smf [broker|receive|publish|guaranteed]`. Broker, feeder and client
are separate processes. Bare loop and endpoint alternate, and the best of each counts.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from gateway.model.message import DeliveryMode, Headers, Message, Value
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.smf import BrokerOptions, QueueOptions, SmfBroker
from gateway.wire.smf.frames import Protocol, SmfDecoder, encode_frame
from gateway.wire.smf.parameters import TOPIC, encode_parameter
from gateway.wire.smf.subscriptions import SubscriptionChange, SubscriptionRequest
from tests.wire.smf_requests import encode_subscription, encode_value

ROUNDS = 3
MESSAGES = 60_000
RELAYED = 1_000_000
BATCH = 200
PAYLOAD = b"x" * 100
TOPIC_NAME = "bench/a/b"
OPTIONS = BrokerOptions(queues=(QueueOptions("bench", ("none/>",)),))


def message_frame() -> bytes:
    """Return a message as the library sends it, with time stamp and sender id."""
    header: dict[str, Value] = {"ts": 1_763_600_000_000, "si": "bench"}
    stream = encode_value([b"\x80\0", {"h": header}])
    metadata = b"\1" + len(stream).to_bytes(4, "big") + stream
    summary = bytes((0x22, len(PAYLOAD), 0x42, len(metadata)))
    parameters = (
        encode_parameter(TOPIC, TOPIC_NAME.encode() + b"\0", handling=2)
        + encode_parameter(0x16, summary, handling=2)
        + b"\3\3\4"
    )
    return encode_frame(
        Protocol.MESSAGE | 0x80, parameters, PAYLOAD + metadata, flags=8, time_to_live=255
    )


def log_in(port: int, name: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    fields = b"".join(
        bytes((kind,)) + (len(text) + 6).to_bytes(4, "big") + text.encode() + b"\0"
        for kind, text in ((0x05, name), (0x06, "default"))
    )
    body = b"\1\0" + (len(fields) + 6).to_bytes(4, "big") + fields
    user = encode_parameter(6, b"YQ==") + encode_parameter(7, b"Yg==")
    connection.sendall(encode_frame(Protocol.CLIENT_CONTROL | 0x80, user, body))
    decoder = SmfDecoder()
    while not decoder.feed(connection.recv(65_536)):
        pass
    return connection


def serve(pipe: Connection) -> None:
    with SmfBroker(options=OPTIONS) as broker:
        pipe.send(broker.port)
        pipe.recv()


@contextlib.contextmanager
def broker_process() -> Iterator[int]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join()


def bench_broker() -> None:
    with broker_process() as port:
        rates = [relay_rate(port, number) for number in range(ROUNDS)]
    print(f"broker alone, 1 to 1      {max(rates):>10,.0f} /s   (goal 100,000)")


def relay_rate(port: int, number: int) -> float:
    frame = message_frame()
    receiver, sender = log_in(port, f"rx{number}"), log_in(port, f"tx{number}")
    request = SubscriptionRequest(SubscriptionChange.ADD, b"bench/>", answered=True, tag=b"\0\0\1")
    receiver.sendall(encode_subscription(request))
    receiver.recv(65_536)
    block = frame * 1_000
    total = RELAYED * len(frame)
    slots = threading.Semaphore(64)  # blocks in flight, so that the broker drops none

    def send() -> None:
        for _ in range(RELAYED // 1_000):
            slots.acquire()
            sender.sendall(block)

    thread = threading.Thread(target=send)
    start = time.perf_counter()
    thread.start()
    got = blocks = 0
    buffer = bytearray(1 << 20)
    while got < total:
        got += receiver.recv_into(buffer)
        while (blocks + 1) * len(block) <= got:
            blocks += 1
            slots.release()
    spent = time.perf_counter() - start
    thread.join()
    sender.close()
    receiver.close()
    return RELAYED / spent


def in_process(
    work: Callable[..., None], *args: object
) -> tuple[multiprocessing.Process, Connection]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=work, args=(theirs, *args), daemon=True)
    process.start()
    return process, ours


def service(port: int) -> Any:  # noqa: ANN401  # the driver has no types
    from solace.messaging.messaging_service import MessagingService  # noqa: PLC0415

    return (
        MessagingService.builder()
        .from_properties(
            {
                "solace.messaging.transport.host": f"tcp://127.0.0.1:{port}",
                "solace.messaging.service.vpn-name": "default",
                "solace.messaging.authentication.basic.username": "bench",
                "solace.messaging.authentication.basic.password": "bench",
            }
        )
        .build()
        .connect()
    )


def receive_bare(pipe: Connection, port: int) -> None:
    """Receive with a handler that reads payload and topic, the fastest interface of the library."""
    from solace.messaging.receiver.message_receiver import MessageHandler  # noqa: PLC0415
    from solace.messaging.resources.topic_subscription import TopicSubscription  # noqa: PLC0415

    times: list[float] = []
    cpu: list[float] = []
    done = threading.Event()
    count = 0

    class Handler(MessageHandler):  # type: ignore[misc]  # the driver has no types
        def on_message(self, message: Any) -> None:  # noqa: ANN401
            nonlocal count
            message.get_payload_as_bytes()
            message.get_destination_name()
            count += 1
            if count in {1, MESSAGES}:
                times.append(time.perf_counter())
                cpu.append(time.process_time())
                if count == MESSAGES:
                    done.set()

    made = service(port)
    builder = made.create_direct_message_receiver_builder()
    receiver = builder.with_subscriptions([TopicSubscription.of("bench/>")]).build().start()
    receiver.receive_async(Handler())
    pipe.send("ready")
    done.wait()
    pipe.send((MESSAGES / (times[1] - times[0]), cpu[1] - cpu[0]))
    made.disconnect()


def receive_endpoint(pipe: Connection, port: int) -> None:
    from gateway.endpoints.base import Subscription  # noqa: PLC0415
    from gateway.endpoints.settings.solace import SolaceSettings  # noqa: PLC0415
    from gateway.endpoints.solace import open_source  # noqa: PLC0415

    settings = SolaceSettings(
        url=f"tcp://127.0.0.1:{port}", guaranteed=False, direct_buffer=MESSAGES
    )
    source = open_source(settings, [Subscription("bench/>")])
    source.open()
    pipe.send("ready")
    count, first, cpu = 0, 0.0, 0.0
    while count < MESSAGES:
        batch = source.receive(1.0)
        if batch is not None:
            if not count:
                first, cpu = time.perf_counter(), time.process_time()
            count += len(batch.messages)
            batch.settle([ACCEPTED] * len(batch.messages))
    pipe.send((MESSAGES / (time.perf_counter() - first), time.process_time() - cpu))
    source.close()


def bench_receive() -> None:
    frame = message_frame()
    rates: dict[str, list[tuple[float, float]]] = {"bare": [], "endpoint": []}
    with broker_process() as port:
        feeder = log_in(port, "feeder")
        for _ in range(ROUNDS):
            for name, work in (("bare", receive_bare), ("endpoint", receive_endpoint)):
                process, pipe = in_process(work, port)
                pipe.recv()
                for _ in range(MESSAGES // 1_000):
                    feeder.sendall(frame * 1_000)
                rates[name].append(pipe.recv())
                process.join()
    compare("direct receive", rates)


def compare(name: str, rates: dict[str, list[tuple[float, float]]]) -> None:
    (bare, bare_cpu), (ours, our_cpu) = (
        (max(rate for rate, _ in rates[loop]), min(cpu for _, cpu in rates[loop]) / MESSAGES * 1e6)
        for loop in ("bare", "endpoint")
    )
    print(
        f"{name:<24}  bare {bare:>8,.0f} /s {bare_cpu:>5.1f} us CPU,"
        f" endpoint {ours:>8,.0f} /s {our_cpu:>5.1f} us CPU:"
        f" {ours / bare:.0%} of the rate, {bare_cpu / our_cpu:.0%} by CPU (goal 80 %)"
    )


def publish_bare(pipe: Connection, port: int, guaranteed: bool) -> None:
    from solace.messaging.errors.pubsubplus_client_error import (  # noqa: PLC0415
        PublisherOverflowError,
    )
    from solace.messaging.publisher.persistent_message_publisher import (  # noqa: PLC0415
        MessagePublishReceiptListener,
    )
    from solace.messaging.resources.topic import Topic  # noqa: PLC0415

    done = threading.Event()
    receipts = 0

    class Listener(MessagePublishReceiptListener):  # type: ignore[misc]  # the driver has no types
        def on_publish_receipt(self, publish_receipt: Any) -> None:  # noqa: ANN401
            nonlocal receipts
            del publish_receipt
            receipts += 1
            if receipts == MESSAGES:
                done.set()

    made = service(port)
    if guaranteed:
        publisher = made.create_persistent_message_publisher_builder().on_back_pressure_reject(0)
    else:
        publisher = made.create_direct_message_publisher_builder().on_back_pressure_reject(0)
    publisher = publisher.build().start()
    if guaranteed:
        publisher.set_message_publish_receipt_listener(Listener())
    message, topic = made.message_builder().build(bytearray(PAYLOAD)), Topic.of(TOPIC_NAME)
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(MESSAGES):
        while True:
            try:
                publisher.publish(message, topic)
            except PublisherOverflowError:
                time.sleep(0.0005)
            else:
                break
    if guaranteed:
        done.wait()
    pipe.send((MESSAGES / (time.perf_counter() - start), time.process_time() - cpu))
    made.disconnect()


def publish_endpoint(pipe: Connection, port: int, guaranteed: bool) -> None:
    from gateway.endpoints.settings.solace import SolaceSettings  # noqa: PLC0415
    from gateway.endpoints.solace import open_sink  # noqa: PLC0415

    sink = open_sink(SolaceSettings(url=f"tcp://127.0.0.1:{port}"))
    sink.open()
    mode = DeliveryMode.AT_LEAST_ONCE if guaranteed else DeliveryMode.AT_MOST_ONCE
    headers = Headers(mode=mode)
    batches = [  # created before: this cost belongs to the source
        [
            Message(TOPIC_NAME, PAYLOAD[:-8] + b"%08d" % (n * BATCH + i), headers)
            for i in range(BATCH)
        ]
        for n in range(10)
    ]
    left = threading.Semaphore(0)
    start, cpu = time.perf_counter(), time.process_time()
    for part in range(MESSAGES // BATCH):
        batch = batches[part % len(batches)]
        sink.send(batch, lambda _: left.release())
    for _ in range(MESSAGES // BATCH):
        left.acquire()
    pipe.send((MESSAGES / (time.perf_counter() - start), time.process_time() - cpu))
    sink.close()


def bench_publish(*, guaranteed: bool) -> None:
    rates: dict[str, list[tuple[float, float]]] = {"bare": [], "endpoint": []}
    with broker_process() as port:
        for _ in range(ROUNDS):
            for name, work in (("bare", publish_bare), ("endpoint", publish_endpoint)):
                process, pipe = in_process(work, port, guaranteed)
                rates[name].append(pipe.recv())
                process.join()
    compare("guaranteed publish" if guaranteed else "direct publish", rates)


BENCHMARKS: dict[str, Callable[[], None]] = {
    "broker": bench_broker,
    "receive": bench_receive,
    "publish": lambda: bench_publish(guaranteed=False),
    "guaranteed": lambda: bench_publish(guaranteed=True),
}


def main() -> None:
    multiprocessing.set_start_method("spawn")
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
