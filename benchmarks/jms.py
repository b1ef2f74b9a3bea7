"""Measures the JMS endpoint with ActiveMQ, and a JPype loop with one call per message.

    python -m benchmarks.jms [messages]

Both run in this process, in sequence, with one broker, after a warm-up of both Java virtual
machines. "busy" means that another Python thread computes all the time, as the rest of a gateway
would. Then `jms_relay` compares whole bridges.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import jms_relay
from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import jvm, open_sink, open_source
from gateway.endpoints.settings.jms import JmsSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.activemq import missing
from tests.brokers.controlled_activemq import ActiveMq, running

BODY = b"x" * 100
BATCH = 500
RECEIVE_TIMEOUT = 60.0
NP = Headers(mode=DeliveryMode.AT_MOST_ONCE)
PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
GOALS = {  # messages per second
    "receive np, busy": 30_000,
    "receive persistent": 15_000,
    "send np": 40_000,
    "send persistent": 15_000,
}


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(1_000))

    thread = threading.Thread(target=spin, daemon=True)
    if wanted:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if wanted:
            thread.join()


def send(
    settings: JmsSettings, address: str, headers: Headers, count: int, *, spin: bool = False
) -> float:
    """Return the messages per second, all of them acknowledged."""
    sink = open_sink(settings)
    sink.open()
    answered = threading.Semaphore(0)
    batch = [Message(address, BODY, headers)] * BATCH
    with busy(spin):
        begin = time.perf_counter()
        for _ in range(count // BATCH):
            sink.send(batch, lambda _settlements: answered.release())
        for _ in range(count // BATCH):
            assert answered.acquire(timeout=RECEIVE_TIMEOUT)
        took = time.perf_counter() - begin
    sink.close()
    return count / took


def receive(settings: JmsSettings, address: str, count: int, *, spin: bool) -> float:
    """Return the messages per second; each batch is settled on receipt."""
    source = open_source(settings, [Subscription(address)])
    source.open()
    left = count
    with busy(spin):
        begin = time.perf_counter()
        while left > 0:
            batch = source.receive(RECEIVE_TIMEOUT)
            assert batch is not None
            left -= len(batch.messages)
            batch.settle([ACCEPTED] * len(batch.messages))
        took = time.perf_counter() - begin
    source.close()
    return count / took


def plain_receive(settings: JmsSettings, address: str, count: int, *, spin: bool) -> float:
    """Receive with a listener in Python that is called for each message and reads its headers."""
    import jpype  # noqa: PLC0415  # the JVM is running

    references = jpype.JClass("org.jpype.ref.JPypeReferenceQueue").getInstance()
    references.start()  # the endpoint has stopped it, and a listener in Python needs it
    connection = plain_connection(settings)
    session = connection.createSession(False, 2)
    done = threading.Event()
    left = count

    @jpype.JImplements("javax.jms.MessageListener")
    class Listener:
        @jpype.JOverride  # type: ignore[untyped-decorator]  # jpype has no types
        def onMessage(self, message: jvm.Java) -> None:  # noqa: N802  # Java's name
            nonlocal left
            read_all(message)
            left -= 1
            if left % 100 == 0:
                message.acknowledge()
            if not left:
                done.set()

    consumer = session.createConsumer(session.createQueue(address.removeprefix("queue:")))
    with busy(spin):
        begin = time.perf_counter()
        consumer.setMessageListener(Listener())
        connection.start()
        assert done.wait(RECEIVE_TIMEOUT * 3)
        took = time.perf_counter() - begin
    connection.close()
    references.stop()
    return count / took


def plain_connection(settings: JmsSettings) -> jvm.Java:
    """Connect with all jars on the class path of the process, as most programs do."""
    import jpype  # noqa: PLC0415  # the JVM is running

    for jar in settings.classpath:
        jpype.addClassPath(jar)
    return jpype.JClass(settings.factory)(settings.urls[0]).createConnection()


def read_all(message: jvm.Java) -> tuple[object, ...]:
    import jpype  # noqa: PLC0415  # the JVM is running

    data = jpype.JArray(jpype.JByte)(int(message.getBodyLength()))
    message.readBytes(data)
    return (
        bytes(data),
        str(message.getJMSDestination().getQueueName()),
        str(message.getJMSMessageID()),
        message.getJMSDeliveryMode(),
        message.getJMSTimestamp(),
        message.getJMSExpiration(),
        message.getJMSPriority(),
        message.getJMSRedelivered(),
        message.getJMSCorrelationID(),
        message.getJMSReplyTo(),
        message.getJMSType(),
    )


def plain_send(settings: JmsSettings, address: str, mode: int, count: int) -> float:
    """Send with three calls of Java per message."""
    import jpype  # noqa: PLC0415  # the JVM is running

    connection = plain_connection(settings)
    session = connection.createSession(False, 1)
    producer = session.createProducer(session.createQueue(address.removeprefix("queue:")))
    producer.setDeliveryMode(mode)
    begin = time.perf_counter()
    for _ in range(count):
        message = session.createBytesMessage()
        message.writeBytes(jpype.JArray(jpype.JByte)(BODY))
        producer.send(message)
    took = time.perf_counter() - begin
    connection.close()
    return count / took


def run(broker: ActiveMq, count: int) -> None:
    settings = broker.settings()
    few = max(count // 10 // BATCH * BATCH, BATCH)
    for headers in (NP, PERSISTENT):
        for acknowledge in ("client", "explicit"):
            warm = broker.settings(acknowledge=acknowledge)
            measure("warm-up", lambda h=headers: send(settings, "queue:warm", h, count))  # type: ignore[misc]  # mypy cannot infer a default
            measure("warm-up", lambda w=warm: receive(w, "queue:warm", count, spin=False))  # type: ignore[misc]  # as above
    for label, headers, mode, part in (
        ("np", NP, 1, few),
        ("persistent", PERSISTENT, 2, max(few // 5 // BATCH * BATCH, BATCH)),
    ):
        fast = measure(f"send {label}", lambda h=headers: send(settings, "queue:a", h, count))  # type: ignore[misc]  # as above
        drain(broker, "queue:a", count)
        measure(
            f"send {label}, busy",
            lambda h=headers: send(settings, "queue:a", h, count, spin=True),  # type: ignore[misc]  # as above
        )
        drain(broker, "queue:a", count)
        slow = measure(
            f"send {label}, one call per message",
            lambda m=mode, p=part: plain_send(settings, "queue:b", m, p),  # type: ignore[misc]  # as above
        )
        ratio(fast, slow)
        for acknowledge in ("explicit", "client"):
            for spin in (False, True):
                kind = f"receive {label}" + (", busy" if spin else "")
                changed = broker.settings(acknowledge=acknowledge)
                queue = f"queue:{label}.{acknowledge}.{spin}"
                send(settings, queue, headers, count)
                fast = measure(
                    f"{kind}, {acknowledge}",
                    lambda c=changed, q=queue, s=spin: receive(c, q, count, spin=s),  # type: ignore[misc]  # as above
                )
                if acknowledge == "client":
                    send(settings, queue, headers, part)
                    slow = measure(
                        f"{kind}, one call per message",
                        lambda c=changed, q=queue, s=spin, p=part: plain_receive(c, q, p, spin=s),  # type: ignore[misc]  # as above
                    )
                    ratio(fast, slow)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'peak resident memory':42} {peak:10.0f} MB   goal < 220 MB")


def drain(broker: ActiveMq, address: str, count: int) -> None:
    """Empty a queue, because a full broker blocks senders."""
    receive(broker.settings(acknowledge="client"), address, count, spin=False)


def measure(label: str, call: Callable[[], float]) -> float:
    rate = call()
    goal = next(
        (goal for kind, goal in GOALS.items() if label.removesuffix(", client") == kind), None
    )
    note = "" if goal is None else f"   goal {goal:,}"
    print(f"{label:42} {rate:10,.0f} /s{note}", flush=True)
    return rate


def ratio(fast: float, slow: float) -> None:
    print(f"{'':42} {fast / slow:10.1f} times as fast", flush=True)


def main() -> None:
    if why := missing():
        print(f"skipped: {why}")
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as broker:
        run(broker, count)
    jms_relay.main([])


if __name__ == "__main__":
    main()
